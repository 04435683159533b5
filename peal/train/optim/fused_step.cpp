#include "peal/train/optim/fused_step.h"

#include <cstdint>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace peal::train {
namespace {

using torch::Tensor;
using torch::optim::Optimizer;
using torch::optim::OptimizerParamGroup;
using TensorVector = std::vector<Tensor>;

// The kernels take the memory of all tensors as one row, so all tensors must be laid out equally.
bool has_layout_of(const Tensor& tensor, const Tensor& parameter) {
  return tensor.defined() && tensor.layout() == torch::kStrided &&
         tensor.device() == parameter.device() && tensor.scalar_type() == parameter.scalar_type() &&
         tensor.sizes() == parameter.sizes() && tensor.strides() == parameter.strides() &&
         !tensor.is_neg();
}

enum class FusedTypes : unsigned char { kF32AndF64, kWithBf16AndF16 };

bool can_be_fused(const Tensor& parameter, FusedTypes types = FusedTypes::kWithBf16AndF16) {
  const auto type = parameter.scalar_type();
  const bool is_full = type == torch::kFloat32 || type == torch::kFloat64;
  const bool is_half = type == torch::kBFloat16 || type == torch::kFloat16;
  const bool has_kernel = is_full || (is_half && types == FusedTypes::kWithBf16AndF16);
  return has_kernel && parameter.is_cpu() && parameter.layout() == torch::kStrided &&
         parameter.is_non_overlapping_and_dense() && has_layout_of(parameter.grad(), parameter);
}

/// The state of a parameter, which `make` makes before the first step.
template <class State, class Make>
State& state_of(Optimizer& optimizer, const Tensor& parameter, const Make& make) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) state = std::make_unique<State>(make());
  return dynamic_cast<State&>(*state);
}

/// A list for the kernels: one number for each parameter.
Tensor step_tensor(std::int64_t step) {
  return torch::scalar_tensor(static_cast<double>(step), torch::kFloat32);
}

// Each of these functions updates the parameters of a group that the kernel can update, and returns
// them.

template <class Options, class State, class Kernel>
TensorVector step_adam(Optimizer& optimizer, OptimizerParamGroup& group, const Kernel& kernel) {
  const auto& options = dynamic_cast<const Options&>(group.options());
  TensorVector parameters, gradients, averages, squares, largest, steps;
  for (const Tensor& parameter : group.params()) {
    if (!can_be_fused(parameter)) continue;
    const auto zeros = [&] { return torch::zeros_like(parameter, torch::MemoryFormat::Preserve); };
    auto& state = state_of<State>(optimizer, parameter, [&] {
      State made;
      made.step(0).exp_avg(zeros()).exp_avg_sq(zeros());
      if (options.amsgrad()) made.max_exp_avg_sq(zeros());
      return made;
    });
    if (!has_layout_of(state.exp_avg(), parameter) ||
        !has_layout_of(state.exp_avg_sq(), parameter) ||
        (options.amsgrad() && !has_layout_of(state.max_exp_avg_sq(), parameter))) {
      continue;
    }
    state.step(state.step() + 1);
    parameters.push_back(parameter);
    gradients.push_back(parameter.grad());
    averages.push_back(state.exp_avg());
    squares.push_back(state.exp_avg_sq());
    if (options.amsgrad()) largest.push_back(state.max_exp_avg_sq());
    steps.push_back(step_tensor(state.step()));
  }
  if (parameters.empty()) return parameters;
  const auto [beta1, beta2] = options.betas();
  kernel(parameters,
         gradients,
         averages,
         squares,
         largest,
         steps,
         options.lr(),
         beta1,
         beta2,
         options.weight_decay(),
         options.eps(),
         options.amsgrad());
  return parameters;
}

/// The tensors of one call of the kernel for SGD.
struct SgdCall {
  TensorVector parameters, gradients, buffers;

  void run(const torch::optim::SGDOptions& options, bool is_first_step) const {
    if (parameters.empty()) return;
    at::_fused_sgd_(parameters,
                    gradients,
                    buffers,
                    options.weight_decay(),
                    options.momentum(),
                    options.lr(),
                    options.dampening(),
                    options.nesterov(),
                    /*maximize=*/false,
                    is_first_step);
  }
};

TensorVector step_sgd(Optimizer& optimizer, OptimizerParamGroup& group) {
  const auto& options = dynamic_cast<const torch::optim::SGDOptions&>(group.options());
  SgdCall first, later;
  for (const Tensor& parameter : group.params()) {
    // For bf16 and f16, the kernel of LibTorch 2.13 loses the update (pytorch/pytorch#191763).
    if (!can_be_fused(parameter, FusedTypes::kF32AndF64)) continue;
    SgdCall* call = &later;
    if (options.momentum() != 0) {
      const auto& state = state_of<torch::optim::SGDParamState>(optimizer, parameter, [&] {
        call = &first;  // the kernel writes the whole buffer
        torch::optim::SGDParamState made;
        made.momentum_buffer(torch::empty_like(parameter, torch::MemoryFormat::Preserve));
        return made;
      });
      if (!has_layout_of(state.momentum_buffer(), parameter)) continue;
      call->buffers.push_back(state.momentum_buffer());
    }
    call->parameters.push_back(parameter);
    call->gradients.push_back(parameter.grad());
  }
  first.run(options, true);
  later.run(options, false);
  later.parameters.insert(later.parameters.end(), first.parameters.begin(), first.parameters.end());
  return std::move(later.parameters);
}

TensorVector step_adagrad(Optimizer& optimizer, OptimizerParamGroup& group) {
  const auto& options = dynamic_cast<const torch::optim::AdagradOptions&>(group.options());
  TensorVector parameters, gradients, sums, steps;
  for (const Tensor& parameter : group.params()) {
    if (!can_be_fused(parameter)) continue;
    auto& state = state_of<torch::optim::AdagradParamState>(optimizer, parameter, [&] {
      torch::optim::AdagradParamState made;
      made.step(0).sum(torch::full_like(parameter, options.initial_accumulator_value()));
      return made;
    });
    if (!has_layout_of(state.sum(), parameter)) continue;
    state.step(state.step() + 1);
    parameters.push_back(parameter);
    gradients.push_back(parameter.grad());
    sums.push_back(state.sum());
    steps.push_back(step_tensor(state.step()));
  }
  if (parameters.empty()) return parameters;
  at::_fused_adagrad_(parameters,
                      gradients,
                      sums,
                      steps,
                      options.lr(),
                      options.lr_decay(),
                      options.weight_decay(),
                      options.eps(),
                      /*maximize=*/false);
  return parameters;
}

/// Updates what the kernel of this optimizer can update. A class derived from an optimizer of
/// LibTorch may have another step, so only the classes themselves count.
TensorVector step_by_kernel(Optimizer& optimizer, OptimizerParamGroup& group) {
  using namespace torch::optim;
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(SGD)) return step_sgd(optimizer, group);
  if (type == typeid(Adagrad)) return step_adagrad(optimizer, group);
  if (type == typeid(Adam)) {
    return step_adam<AdamOptions, AdamParamState>(optimizer, group, [](const auto&... values) {
      at::_fused_adam_(values..., /*maximize=*/false);
    });
  }
  if (type == typeid(AdamW)) {
    return step_adam<AdamWOptions, AdamWParamState>(optimizer, group, [](const auto&... values) {
      at::_fused_adamw_(values..., /*maximize=*/false);
    });
  }
  return {};
}

/// While this object lives, the parameters have no gradients, and so no step changes them.
class HiddenGradients final {
 public:
  explicit HiddenGradients(const TensorVector& parameters) : parameters_(parameters) {
    for (const Tensor& parameter : parameters_) {
      gradients_.push_back(std::exchange(parameter.mutable_grad(), {}));
    }
  }
  ~HiddenGradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = std::move(gradients_[i]);
    }
  }
  HiddenGradients(const HiddenGradients&) = delete;
  HiddenGradients& operator=(const HiddenGradients&) = delete;

 private:
  const TensorVector& parameters_;
  TensorVector gradients_;
};

bool has_gradient(const OptimizerParamGroup& group) {
  for (const Tensor& parameter : group.params()) {
    if (parameter.grad().defined()) return true;
  }
  return false;
}

}  // namespace

void fused_step(Optimizer& optimizer) {
  const torch::NoGradGuard no_grad;
  TensorVector updated;
  for (OptimizerParamGroup& group : optimizer.param_groups()) {
    const TensorVector in_group = step_by_kernel(optimizer, group);
    updated.insert(updated.end(), in_group.begin(), in_group.end());
  }
  const HiddenGradients hidden(updated);
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    if (!has_gradient(group)) continue;
    optimizer.step();
    return;
  }
}

}  // namespace peal::train
