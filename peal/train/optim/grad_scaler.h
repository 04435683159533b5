// Scales the loss of f16 training, so that small gradients do not become zero, and skips steps
// whose gradients overflowed. C++ LibTorch has no such class.
#pragma once

#include <cstdint>
#include <map>

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "peal/group/process_group.h"

namespace peal::train {

/// The numbers of a GradScaler, for a checkpoint. The defaults are those of torch.amp.GradScaler.
struct GradScalerState {
  double scale = 65536;
  double growth_factor = 2;     // more than 1
  double backoff_factor = 0.5;  // less than 1
  std::int64_t growth_interval = 2000;
  std::int64_t growth_tracker = 0;  // updates without an overflow since the last change

  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

/// A step of training:
///   { Autocast autocast(torch::kHalf); loss = ...; }
///   scaler.scale(loss).backward();
///   scaler.unscale_(optimizer);                        // only to see or clip the gradients
///   clip_grad_norm_(net->parameters(), 1.0);
///   scaler.step(optimizer);                            // skips if a gradient is not finite
///   scaler.update();
/// After an overflow, update() multiplies the scale by backoff_factor. After growth_interval
/// updates in sequence without an overflow, it multiplies by growth_factor. A program may
/// step several optimizers between two updates.
///
/// With a group, an overflow on one rank makes all ranks skip the step. Ranks need this if each
/// has other gradients (FSDP, ZeRO, tensor and pipeline parallelism). After
/// DistributedDataParallel, all ranks have the same gradients, so the group may be nullptr.
/// Order: with a group, unscale_ is collective, and so is a step without unscale_ before it. All
///   ranks make the same calls. Then all ranks have the same scale.
/// Threads: one at a time.
/// Source: Micikevicius et al. 2018, Mixed precision training; torch.amp.GradScaler.
class GradScaler final {
 public:
  /// Errors: usage (a factor out of its range).
  explicit GradScaler(ProcessGroupPtr group = nullptr, const GradScalerState& state = {});

  /// loss * scale, for backward.
  torch::Tensor scale(const torch::Tensor& loss) const;

  /// Divides the gradients of the optimizer's parameters by the scale, and looks for infinities and
  /// NaNs. A parameter in several groups is divided once.
  /// Errors: usage (called twice before update(), or after step()), unsupported (f16 gradients,
  ///   whose parameters should be f32 under Autocast; gradients that are not on the CPU), those of
  ///   all_reduce.
  /// Cost: a pass over the gradients; with a group, an all_reduce of one f32.
  void unscale_(torch::optim::Optimizer& optimizer);

  enum class Step : unsigned char { kTaken, kSkipped };
  /// Steps the optimizer, unless a gradient was not finite. Calls unscale_ if the program has not.
  /// Errors: usage (called twice before update()); those of unscale_ and of the optimizer.
  Step step(torch::optim::Optimizer& optimizer);

  /// Adapts the scale. Call it once after the steps of all optimizers.
  /// Errors: usage (no optimizer was unscaled since the last update).
  void update();
  /// Sets the scale instead.
  void update(double new_scale);

  double current_scale() const;

  /// Errors: usage (between unscale_ and update).
  GradScalerState state() const;
  /// Errors: usage (between unscale_ and update; a factor out of its range).
  void load(const GradScalerState& state);

 private:
  enum class Stage : unsigned char { kReady, kUnscaled, kStepped };
  struct OptimizerProgress {
    Stage stage;
    torch::Tensor found_inf;  // one f32, not 0 if a gradient was not finite
  };

  Stage stage_of(const torch::optim::Optimizer& optimizer) const;
  void require_between_steps(const char* action) const;

  ProcessGroupPtr group_;
  GradScalerState options_;       // scale and growth_tracker are in the tensors
  torch::Tensor scale_;           // one f32
  torch::Tensor growth_tracker_;  // one i32
  std::map<const torch::optim::Optimizer*, OptimizerProgress> progress_;  // since the last update
};

}  // namespace peal::train
