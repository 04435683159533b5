#include "peal/train/optim/grad_scaler.h"

#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/gradient_norm.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

Error wrong_order(const char* text) { return Error(ErrorKind::kUsage, text); }

void require_valid(const GradScalerState& state) {
  if (state.scale > 0 && state.growth_factor > 1 && state.backoff_factor > 0 &&
      state.backoff_factor < 1 && state.growth_interval > 0 && state.growth_tracker >= 0) {
    return;
  }
  throw Error(ErrorKind::kUsage,
              c10::str("a GradScaler with scale ",
                       state.scale,
                       ", growth factor ",
                       state.growth_factor,
                       ", backoff factor ",
                       state.backoff_factor,
                       " and growth interval ",
                       state.growth_interval,
                       ": the scale and the interval must be positive, the growth factor more than "
                       "1, and the backoff factor between 0 and 1"));
}

/// The memory of the optimizer's gradients, in which they can be changed.
std::vector<Tensor> gradients_to_unscale(const torch::optim::Optimizer& optimizer) {
  std::vector<Tensor> parameters;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  std::vector<Tensor> gradients;
  for (const Tensor& gradient : gradients_of(parameters)) {
    if (gradient.scalar_type() == torch::kHalf || !gradient.device().is_cpu()) {
      throw Error(ErrorKind::kUnsupported,
                  c10::str("GradScaler got a gradient of type ",
                           gradient.scalar_type(),
                           " on ",
                           gradient.device(),
                           ": keep the parameters in f32 on the CPU, and compute in f16 by "
                           "Autocast"));
    }
    gradients.push_back(gradient.is_sparse() ? gradient._values() : gradient);
  }
  return gradients;
}

}  // namespace

GradScaler::GradScaler(ProcessGroupPtr group, const GradScalerState& state)
    : group_(std::move(group)) {
  load(state);
}

torch::Tensor GradScaler::scale(const torch::Tensor& loss) const { return loss * scale_; }

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (stage_of(optimizer) == Stage::kUnscaled) {
    throw wrong_order(
        "unscale_ was called twice for an optimizer: call update() once in each step");
  }
  if (stage_of(optimizer) == Stage::kStepped) {
    throw wrong_order(
        "unscale_ was called after step(): call it before step(), and update() after all steps");
  }
  const torch::NoGradGuard no_grad;
  Tensor found_inf = torch::zeros({});
  const Tensor inverse = scale_.to(torch::kFloat64).reciprocal().to(torch::kFloat32);
  for (const std::vector<Tensor>& gradients : by_type(gradients_to_unscale(optimizer))) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inverse);
  }
  if (group_) all_reduce(*group_, found_inf, {.op = ReduceOp::kMax});
  progress_[&optimizer] = {Stage::kUnscaled, found_inf};
}

GradScaler::Step GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (stage_of(optimizer) == Stage::kStepped) {
    throw wrong_order("step was called twice for an optimizer: call update() once in each step");
  }
  if (stage_of(optimizer) == Stage::kReady) unscale_(optimizer);
  OptimizerProgress& progress = progress_.at(&optimizer);
  progress.stage = Stage::kStepped;
  if (progress.found_inf.item<float>() != 0) return Step::kSkipped;
  optimizer.step();
  return Step::kTaken;
}

GradScaler::Stage GradScaler::stage_of(const torch::optim::Optimizer& optimizer) const {
  const auto found = progress_.find(&optimizer);
  return found == progress_.end() ? Stage::kReady : found->second.stage;
}

void GradScaler::update() {
  if (progress_.empty()) {
    throw wrong_order(
        "update was called, but no optimizer was unscaled or stepped: call step(optimizer) first");
  }
  Tensor found_inf = torch::zeros({});
  for (const auto& [optimizer, progress] : progress_) found_inf += progress.found_inf;
  at::_amp_update_scale_(scale_,
                         growth_tracker_,
                         found_inf,
                         options_.growth_factor,
                         options_.backoff_factor,
                         options_.growth_interval);
  progress_.clear();
}

void GradScaler::update(double new_scale) {
  GradScalerState changed = options_;
  changed.scale = new_scale;
  require_valid(changed);
  scale_.fill_(new_scale);
  progress_.clear();
}

double GradScaler::current_scale() const { return scale_.item<float>(); }

GradScalerState GradScaler::state() const {
  require_between_steps("saved");
  GradScalerState state = options_;
  state.scale = current_scale();
  state.growth_tracker = growth_tracker_.item<std::int32_t>();
  return state;
}

void GradScaler::load(const GradScalerState& state) {
  require_between_steps("loaded");
  require_valid(state);
  options_ = state;
  scale_ = torch::full({}, state.scale, torch::kFloat32);
  growth_tracker_ = torch::full({}, state.growth_tracker, torch::kInt32);
}

void GradScaler::require_between_steps(const char* action) const {
  if (progress_.empty()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("a GradScaler cannot be ", action, " within a step: call update() first"));
}

}  // namespace peal::train
