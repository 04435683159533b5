#include "peal/train/nn/synchronized_normalization.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/nn/moments.h"
#include "peal/train/tensors/tensors.h"

namespace peal::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The type to compute in: f64 for f64, else f32.
torch::ScalarType computing_type(const Tensor& input) {
  return input.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

std::optional<Tensor> converted(const std::optional<Tensor>& tensor, torch::ScalarType type) {
  return tensor ? std::optional(tensor->to(type)) : std::nullopt;
}

/// Autograd functions take undefined tensors in this form.
std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// Tensor of one number for each channel, shaped to broadcast over `like`.
Tensor by_channel(const Tensor& numbers, const Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[1] = numbers.numel();
  return numbers.to(like.scalar_type()).view(shape);
}

Moments local_moments(const Tensor& input) {
  const std::int64_t channels = input.size(1);
  if (input.numel() == 0) return no_moments(static_cast<std::size_t>(channels));
  // The kernel accepts statistics to update, and returns those of this batch.
  const auto [mean, variance] =
      at::batch_norm_update_stats(input.to(computing_type(input)), {}, {}, /*momentum=*/0);
  const auto count = static_cast<double>(input.numel()) / static_cast<double>(channels);
  const Tensor row = torch::cat({torch::full({1}, count, torch::kFloat64),
                                 mean.to(torch::kFloat64),
                                 variance.to(torch::kFloat64) * count});
  return moments_of({row.const_data_ptr<double>(), static_cast<std::size_t>(row.numel())});
}

struct Sums {
  Tensor gradient;           // sum of dy
  Tensor centered_gradient;  // sum of dy * (x - mean)
};

/// The sum over the ranks r of weight_r * local_r, divided by the weight of this rank. With a
/// weight of 0 this rank has no input, so the result does not matter.
Sums summed_over_ranks(ProcessGroup& group, const Sums& local, double weight) {
  const Tensor both = torch::stack({local.gradient, local.centered_gradient}).to(torch::kFloat64);
  both.mul_(weight);
  all_reduce(group, both);
  if (weight != 0) both.div_(weight);
  return {both[0], both[1]};
}

/// All that backward needs but its tensors.
struct NormalizationConstants final : torch::CustomClassHolder {
  NormalizationConstants(ProcessGroupPtr ranks,
                         double values,
                         const Affine& affine,
                         double weight_of_loss)
      : group(std::move(ranks)), count(values), eps(affine.eps), loss_weight(weight_of_loss) {
    if (affine.bias.defined()) bias_type = affine.bias.scalar_type();
  }
  ProcessGroupPtr group;
  double count;  // over all ranks
  double eps;
  double loss_weight;
  std::optional<torch::ScalarType> bias_type;
};
using ConstantsPtr = c10::intrusive_ptr<NormalizationConstants>;

/// forward is the normalization by given statistics. backward, with N the count over all ranks:
///   dx = (dy - sum of dy / N - (x - mean) / (var + eps) * sum of dy (x - mean) / N)
///        * weight / sqrt(var + eps)
/// A sum over the samples of all ranks counts each rank with its loss_weight.
class Normalization final : public torch::autograd::Function<Normalization> {
 public:
  static Tensor forward(AutogradContext* context,
                        const Tensor& input,
                        const std::optional<Tensor>& weight,
                        const std::optional<Tensor>& bias,
                        const GlobalStatistics& statistics,
                        const ConstantsPtr& constants) {
    const torch::ScalarType type = computing_type(input);
    const Tensor mean = statistics.mean.to(type);
    const Tensor variance = statistics.variance.to(type);
    context->save_for_backward({input, weight.value_or(Tensor()), mean, variance});
    context->saved_data["constants"] = c10::IValue::make_capsule(constants);
    if (input.numel() == 0) return torch::empty_like(input);
    const auto output = at::native_batch_norm(input.to(type),
                                              converted(weight, type),
                                              converted(bias, type),
                                              mean,
                                              variance,
                                              /*training=*/false,
                                              /*momentum=*/0,
                                              constants->eps);
    return std::get<0>(output).to(input.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw Error(ErrorKind::kUnsupported,
                  "SyncBatchNorm has no second derivative: call backward without create_graph");
    }
    const Saved saved(*context);
    Local local = local_gradients(saved, gradients[0].to(saved.type));
    Tensor input_gradient, weight_gradient, bias_gradient;
    if (context->needs_input_grad(0)) {
      add_gradient_of_statistics(saved, local);
      input_gradient = local.input.to(saved.input_type);
    }
    if (saved.weight) {
      weight_gradient = local.weight.to(saved.weight_type);
    }
    if (saved.constants->bias_type) {
      bias_gradient = local.sums.gradient.to(*saved.constants->bias_type);
    }
    return {input_gradient, weight_gradient, bias_gradient, {}, {}};
  }

 private:
  /// What forward saved, with all tensors in the computing type.
  struct Saved {
    explicit Saved(AutogradContext& context) {
      const variable_list tensors = context.get_saved_variables();
      input_type = tensors[0].scalar_type();
      type = computing_type(tensors[0]);
      input = tensors[0].to(type);
      if (tensors[1].defined()) weight_type = tensors[1].scalar_type();
      weight = converted(if_defined(tensors[1]), type);
      mean = tensors[2];
      variance = tensors[3];
      constants = c10::static_intrusive_pointer_cast<NormalizationConstants>(
          context.saved_data["constants"].toCapsule());
    }
    Tensor input, mean, variance;
    std::optional<Tensor> weight;
    torch::ScalarType type, input_type, weight_type = torch::kFloat32;
    ConstantsPtr constants;
  };

  struct Local {
    Tensor input;  // as if mean and variance were constants
    Tensor weight;
    Sums sums;
  };

  static Local local_gradients(const Saved& saved, const Tensor& gradient) {
    if (saved.input.numel() == 0) {
      const Tensor zeros = torch::zeros_like(saved.mean);
      return {torch::empty_like(saved.input), zeros, {zeros, zeros}};
    }
    const auto [input, weight, bias] = at::native_batch_norm_backward(gradient,
                                                                      saved.input,
                                                                      saved.weight,
                                                                      saved.mean,
                                                                      saved.variance,
                                                                      /*save_mean=*/{},
                                                                      /*save_invstd=*/{},
                                                                      /*train=*/false,
                                                                      saved.constants->eps,
                                                                      {true, true, true});
    return {input, weight, {bias, weight * (saved.variance + saved.constants->eps).sqrt()}};
  }

  /// Adds the gradient by way of mean and variance, which depend on the inputs of all ranks.
  static void add_gradient_of_statistics(const Saved& saved, Local& local) {
    const NormalizationConstants& constants = *saved.constants;
    const Sums all = summed_over_ranks(*constants.group, local.sums, constants.loss_weight);
    const Tensor variance = saved.variance.to(torch::kFloat64) + constants.eps;
    Tensor scale = variance.rsqrt() / -constants.count;
    if (saved.weight) scale = scale * saved.weight->to(torch::kFloat64);
    const Tensor slope = all.centered_gradient / variance * scale;
    const Tensor& input = saved.input;
    local.input.addcmul_(input - by_channel(saved.mean, input), by_channel(slope, input));
    local.input.add_(by_channel(all.gradient * scale, input));
  }
};

}  // namespace

GlobalStatistics global_statistics(ProcessGroup& group, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  if (!input.device().is_cpu()) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("SyncBatchNorm got an input on ",
                         input.device(),
                         ", but it runs on the CPU only: move the module and the input there"));
  }
  const std::vector<double> mine = row_of(local_moments(input));
  std::vector<double> rows(mine.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(ConstBuffer(std::span<const double>(mine)), Buffer(std::span<double>(rows)));

  const auto channels = static_cast<std::size_t>(input.size(1));
  Moments all = no_moments(channels);
  for (std::size_t at = 0; at < rows.size(); at += mine.size()) {
    all = combined(std::move(all), moments_of(std::span(rows).subspan(at, mine.size())));
  }
  if (all.count < 2) {
    throw Error(
        ErrorKind::kUsage,
        c10::str("the batches of all ranks together have ",
                 all.count,
                 " values for each channel, and statistics need at least two: use larger batches"));
  }
  return {all.count,
          torch::tensor(all.mean, torch::kFloat64),
          torch::tensor(all.squares, torch::kFloat64) / all.count};
}

torch::Tensor synchronized_normalization(const ProcessGroupPtr& group,
                                         const torch::Tensor& input,
                                         const GlobalStatistics& statistics,
                                         const Affine& affine,
                                         double loss_weight) {
  return Normalization::apply(
      input,
      if_defined(affine.weight),
      if_defined(affine.bias),
      statistics,
      c10::make_intrusive<NormalizationConstants>(group, statistics.count, affine, loss_weight));
}

}  // namespace peal::train
