#include "peal/train/horovod/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/horovod/context.h"
#include "peal/train/horovod/start.h"

namespace peal::hvd {
namespace {

using SparseGradients = DistributedOptions::SparseGradients;

Error usage(const std::string& text) { return {ErrorKind::kUsage, text}; }

void check(const DistributedOptions& options) {
  if (options.backward_passes_per_step <= 0) {
    throw usage("backward_passes_per_step must be > 0");
  }
  if (options.gradient_predivide_factor != 1.0 && options.op != Average) {
    throw usage("gradient_predivide_factor not supported with op != Average");
  }
  if (options.num_groups < 0) throw usage("num_groups must be 0 or more");
  if (options.num_groups > 0 && !options.groups.empty()) {
    throw usage("give either groups or num_groups");
  }
}

Tensor sparse_zeros_like(const Tensor& parameter) {
  std::vector<std::int64_t> values = parameter.sizes().vec();
  values.front() = 0;
  const auto options = parameter.options().requires_grad(false);
  return torch::sparse_coo_tensor(torch::empty({1, 0}, options.dtype(torch::kInt64)),
                                  torch::empty(values, options),
                                  parameter.sizes());
}

}  // namespace

GradientExchange::GradientExchange(const torch::optim::Optimizer& optimizer,
                                   const NamedTensors& named,
                                   DistributedOptions options)
    : options_(std::move(options)) {
  check(options_);
  current();  // throws before init
  follow_context();
  add_parameters(optimizer, named);
  add_units();
  if (is_active_ && !is_adasum()) add_hooks();
  make_places();
}

GradientExchange::~GradientExchange() = default;

/// After a shutdown and an init: the set may have another size, and what was in flight has failed.
void GradientExchange::follow_context() {
  const ContextPtr context = try_current();
  if (!context || context_.lock() == context) return;
  const ProcessSetPtr set = context->set(options_.process_set.id());
  size_ = set->size();
  const bool is_elastic = context->settings().elastic == Switch::kOn;
  const bool has_mean = options_.accumulation == DistributedOptions::Accumulation::kMean;
  is_active_ = set->included() && (size_ > 1 || is_elastic || has_mean);
  context_ = context;
  make_places();
  forget();
}

/// In memory of the set's group. Compressed gradients are copied anyway.
void GradientExchange::make_places() {
  places_.reset();
  if (parameters_.empty()) return;  // the constructor has not added them yet
  if (!is_active_ || is_adasum() || options_.compression || size_ == 1) return;
  const ProcessGroupPtr group = current()->set(options_.process_set.id())->group();
  if (!group || !group->capabilities().registered_memory) return;
  std::vector<train::NamedTensor> parameters;
  for (const Parameter& one : parameters_) parameters.emplace_back(one.name, one.tensor);
  places_ = std::make_unique<GradientPlaces>(group, parameters);
}

// ---- construction

void GradientExchange::add_parameters(const torch::optim::Optimizer& optimizer,
                                      const NamedTensors& named) {
  std::unordered_map<const c10::TensorImpl*, std::string> names;
  for (const auto& item : named) names.emplace(item.value().unsafeGetTensorImpl(), item.key());
  const auto& groups = optimizer.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Tensors& tensors = groups[g].params();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto found = names.find(tensors[i].unsafeGetTensorImpl());
      if (found == names.end() && !named.is_empty()) {
        throw usage(c10::str(
            "named_parameters was specified, but one or more model parameters were not named: a "
            "parameter of shape ",
            tensors[i].sizes(),
            " of the optimizer is not among them"));
      }
      index_of_.emplace(tensors[i].unsafeGetTensorImpl(), parameters_.size());
      parameters_.push_back(
          {.name = found != names.end() ? found->second : c10::str("allreduce.noname.", g, ".", i),
           .tensor = tensors[i],
           .passes_left = options_.backward_passes_per_step});
    }
  }
}

void GradientExchange::add_unit(std::vector<std::size_t> parameters, Unit::Kind kind) {
  for (const std::size_t parameter : parameters) parameters_[parameter].unit = units_.size();
  units_.push_back({.parameters = std::move(parameters), .kind = kind});
}

void GradientExchange::add_given_groups() {
  std::vector<bool> is_taken(parameters_.size());
  for (const Tensors& group : options_.groups) {
    std::vector<std::size_t> members;
    for (const Tensor& tensor : group) {
      const auto found = index_of_.find(tensor.unsafeGetTensorImpl());
      if (found == index_of_.end()) {
        throw usage("groups has a tensor that is not a parameter of the optimizer");
      }
      if (is_taken[found->second]) throw usage("A parameter can only appear once in groups.");
      is_taken[found->second] = true;
      if (tensor.requires_grad()) members.push_back(found->second);
    }
    if (!members.empty()) add_unit(std::move(members), Unit::Kind::kGroup);
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_taken[i] && parameters_[i].tensor.requires_grad())
      add_unit({i}, Unit::Kind::kParameter);
  }
}

void GradientExchange::add_units() {
  if (options_.num_groups == 0) return add_given_groups();
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].tensor.requires_grad()) trained.push_back(i);
  }
  const auto groups = static_cast<std::size_t>(options_.num_groups);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto at = [&](std::size_t part) {
      return trained.begin() + static_cast<std::ptrdiff_t>(part * trained.size() / groups);
    };
    std::vector<std::size_t> members(at(g), at(g + 1));
    if (!members.empty()) add_unit(std::move(members), Unit::Kind::kGroup);
  }
}

void GradientExchange::add_hooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    if (!parameter.tensor.requires_grad()) continue;
    parameter.hook = std::make_unique<train::GradientHook>(
        parameter.tensor,
        train::GradientCalls{
            .computed = [this, i](const Tensor& gradient) { return computed(i, gradient); },
            .accumulated = [this, i] { accumulated(i); }});
  }
}

// ---- a step

Tensor GradientExchange::computed(std::size_t index, const Tensor& gradient) {
  follow_context();
  return places_ ? places_->computed(index, gradient) : gradient;
}

void GradientExchange::accumulated(std::size_t index) {
  const train::PlacesPaused paused;
  follow_context();
  if (places_) places_->accumulated(index);
  Parameter& parameter = parameters_[index];
  if (parameter.passes_left <= 0) {
    throw usage(
        "Gradients were computed more than backward_passes_per_step times before call to step(). "
        "Increase backward_passes_per_step to accumulate gradients locally. (" +
        parameter.name + ")");
  }
  if (--parameter.passes_left > 0) return;
  Unit& unit = units_[parameter.unit];
  if (++unit.ready < unit.parameters.size()) return;
  try {
    start(unit);
  } catch (const Error&) {
    current()->leave_backward(std::current_exception());
    throw;
  }
}

Tensor GradientExchange::gradient_of(Parameter& parameter) const {
  Tensor& gradient = parameter.tensor.mutable_grad();
  if (!gradient.defined()) {
    gradient = parameter.is_sparse ? sparse_zeros_like(parameter.tensor)
                                   : torch::zeros_like(parameter.tensor);
  }
  parameter.is_sparse = gradient.is_sparse();
  return gradient;
}

ReductionOptions GradientExchange::reduction(const std::string& name) const {
  ReductionOptions reduction;
  reduction.name = name;
  reduction.op = options_.op;
  reduction.compression = options_.compression;
  reduction.process_set = options_.process_set;
  if (const double factor = options_.gradient_predivide_factor; factor != 1.0) {
    reduction.op = Sum;
    reduction.prescale_factor = 1.0 / factor;
    reduction.postscale_factor = factor / size_;
  }
  if (options_.accumulation == DistributedOptions::Accumulation::kMean) {
    reduction.postscale_factor /= options_.backward_passes_per_step;
  }
  return reduction;
}

PendingPtr GradientExchange::start_sparse(Parameter& parameter) {
  return start_sparse_allreduce(parameter.tensor.grad(), reduction(parameter.name), Waits::kLater);
}

void GradientExchange::start(Unit& unit) {
  const torch::NoGradGuard no_grad;
  Tensors gradients;
  for (const std::size_t index : unit.parameters) {
    Parameter& parameter = parameters_[index];
    Tensor gradient = gradient_of(parameter);
    if (parameter.is_sparse && options_.sparse_gradients == SparseGradients::kSparse) {
      if (unit.kind == Unit::Kind::kGroup) {
        throw usage("the sparse gradient of " + parameter.name +
                    " cannot be reduced in a group: use SparseGradients::kAsDense");
      }
      unit.pending = start_sparse(parameter);
      return;
    }
    gradients.push_back(parameter.is_sparse ? gradient.to_dense() : std::move(gradient));
  }
  unit.pending = start_allreduce(gradients,
                                 unit.kind == Unit::Kind::kGroup ? Form::kGroup : Form::kOne,
                                 InPlace::kYes,
                                 reduction(parameters_[unit.parameters.front()].name),
                                 Waits::kLater);
}

/// Stores gradients that were not reduced in place.
void GradientExchange::finish(Unit& unit) {
  const Tensors& results = unit.pending->wait();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Parameter& parameter = parameters_[unit.parameters[i]];
    if (!parameter.is_sparse) continue;
    parameter.tensor.mutable_grad() = results[i].is_sparse() ? results[i] : results[i].to_sparse(1);
  }
}

/// The memory of the gradients belongs to the operations until all have ended.
void GradientExchange::wait_for_all() {
  for (const Unit& unit : units_) {
    try {
      if (unit.pending) unit.pending->wait();
    } catch (...) {
      // The caller handles the first error.
    }
  }
}

void GradientExchange::synchronize() {
  follow_context();
  if (!is_active_ || is_adasum()) return;
  try {
    for (Unit& unit : units_) {
      if (!unit.pending) start(unit);
    }
    for (Unit& unit : units_) finish(unit);
  } catch (...) {
    wait_for_all();
    forget();
    throw;
  }
  forget();
  for (Parameter& parameter : parameters_) {
    if (parameter.hook) parameter.hook->renew();
  }
  is_synchronized_ = true;
}

void GradientExchange::before_step() {
  follow_context();
  if (!is_active_ || is_adasum()) return;
  if (!skips_) {
    if (is_synchronized_) {
      current()->report(
          "optimizer.step() called without optimizer.skip_synchronize() context after "
          "optimizer.synchronize(). This can cause training slowdown. You may want to consider "
          "using optimizer.skip_synchronize() context if you use optimizer.synchronize() in your "
          "code.");
    }
    synchronize();
  }
  is_synchronized_ = false;
}

void GradientExchange::before_zero_grad() {
  follow_context();
  const bool is_touched = std::ranges::any_of(parameters_, [&](const Parameter& parameter) {
    return parameter.passes_left != options_.backward_passes_per_step;
  });
  if (!is_touched || !is_active_) return;
  throw usage(
      "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
      "optimizer.synchronize(). This is prohibited as it can cause a race condition.");
}

void GradientExchange::forget() {
  for (Unit& unit : units_) {
    unit.pending.reset();
    unit.ready = 0;
  }
  for (Parameter& parameter : parameters_) {
    parameter.passes_left = options_.backward_passes_per_step;
  }
  if (places_) places_->begin_step();
}

void GradientExchange::set_backward_passes_per_step(int passes) {
  if (passes <= 0) throw usage("backward_passes_per_step must be > 0");
  options_.backward_passes_per_step = passes;
  for (Parameter& parameter : parameters_) parameter.passes_left = passes;
}

void GradientExchange::begin_skipping() { skips_ = true; }
void GradientExchange::end_skipping() { skips_ = false; }

// ---- Adasum

Tensors GradientExchange::start_of_step() const {
  const torch::NoGradGuard no_grad;
  Tensors start;
  for (const Parameter& parameter : parameters_) start.push_back(parameter.tensor.clone());
  return start;
}

void GradientExchange::combine_changes(const Tensors& start) {
  const torch::NoGradGuard no_grad;
  struct Change {
    std::size_t parameter;
    PendingPtr pending;
  };
  std::vector<Change> changes;
  for (const Unit& unit : units_) {
    for (const std::size_t i : unit.parameters) {
      const Tensor change = parameters_[i].tensor - start[i];
      changes.push_back(
          {i,
           start_allreduce(
               change, Form::kOne, InPlace::kYes, reduction(parameters_[i].name), Waits::kLater)});
    }
  }
  for (const Change& change : changes) {
    const Tensor& combined = change.pending->wait().front();
    parameters_[change.parameter].tensor.copy_(start[change.parameter] + combined);
  }
}

// ---- SkipSynchronize

SkipSynchronize::SkipSynchronize(GradientExchange& exchange) : exchange_(exchange) {
  if (exchange.is_adasum() && exchange.is_active()) {
    throw usage("Skipping synchronization is not supported when using Adasum optimizer.");
  }
  exchange_.begin_skipping();
}

SkipSynchronize::~SkipSynchronize() { exchange_.end_skipping(); }

}  // namespace peal::hvd
