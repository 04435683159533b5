// A Trainer without its templates: options, steps, checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/train/checkpoint/async_checkpointer.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/ddp/data_parallel_options.h"
#include "peal/train/ddp/gradient_reducer.h"
#include "peal/train/optim/grad_scaler.h"
#include "peal/train/samplers/epoch_sampler.h"
#include "peal/train/trainer/learning_rates.h"
#include "peal/train/trainer/metrics.h"
#include "peal/train/trainer/reports.h"

namespace peal::train {

struct TrainerOptions {
  std::int64_t epochs = 1;
  /// The batches of each step on each rank: their gradients accumulate.
  int accumulate = 1;
  /// The largest norm of all gradients together, more than 0; nothing: no limit.
  std::optional<double> clip_norm = {};
  /// The type in which forward computes: kBFloat16, or kHalf with a GradScaler; nothing: that of
  /// the parameters.
  std::optional<torch::ScalarType> autocast = {};
  /// Null: the learning rates of the optimizer.
  LearningRateFactor learning_rate = {};

  /// The folder of checkpoints, which all ranks share; empty: none are saved. A run that finds
  /// checkpoints there continues from the last.
  std::filesystem::path checkpoints = {};
  /// Steps between two checkpoints; 0: one after each epoch.
  std::int64_t save_every = 0;
  int keep = 2;  // checkpoints that remain; 0: all

  /// A Trainer always averages by samples.
  DataParallelOptions parallel = {};
};

/// The parts of a Trainer that do not depend on its module.
class TrainingRun final {
 public:
  /// Order: collective. Errors: usage (an option without a meaning), unsupported (autocast for a
  ///   module that is not on the CPU), mismatch (ranks have other options).
  TrainingRun(std::shared_ptr<torch::nn::Module> module,
              torch::optim::Optimizer& optimizer,
              ProcessGroupPtr group,
              TrainerOptions options);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // ---- callbacks
  std::vector<std::function<void(const StartReport&)>> on_start;
  std::vector<std::function<void(const StepReport&)>> on_step;
  std::vector<std::function<void(const EpochReport&)>> on_epoch;
  std::vector<std::function<void(const RunReport&)>> on_end;
  std::vector<std::function<void(Checkpoint&)>> on_save;
  std::vector<std::function<void(const CheckpointReader&)>> on_load;

  // ---- a run
  /// Continues from the last checkpoint, or else after the last step of this object. Moves the
  /// sampler there. Before that, checks that all ranks can save.
  /// Order: collective.
  /// Errors: on every rank the same: mismatch (ranks have samplers of another size or seed), usage
  ///   (a sampler of another rank), unsupported (checkpoints of data that each rank has for
  ///   itself). Also usage (a position in an epoch of other data, or in another order), and those
  ///   of prepare_checkpoint_folder, open_latest_checkpoint and CheckpointReader.
  void begin(EpochSampler& sampler);
  /// The epoch that is running, or comes next.
  std::int64_t epoch() const { return epoch_; }
  void begin_epoch(std::int64_t steps_in_epoch);
  /// Runs backward for a loss that is the mean of `samples` samples.
  void backward(const torch::Tensor& loss, std::int64_t samples);
  /// After the gradients of all ranks were averaged: clips, steps the optimizer, and reports.
  /// `position` is that of the sampler, or the end of the epoch if this rank has no further batch.
  void step(std::size_t position);
  /// Saves if it is time, or if the run stops. Order: collective.
  void save_if_due(bool stops);
  /// Reports the epoch, unless this object took no step in it: then the run had been saved after
  /// its last step. Order: collective. Errors: also usage (a whole epoch without a step).
  void end_epoch();
  /// Waits for the last checkpoint. `signal` is that of this rank; 0: none. Order: collective.
  RunReport finish(RunEnd end, int signal);

  const TrainerOptions& options() const { return options_; }
  Metrics& metrics() { return metrics_; }
  ProcessGroup& group() { return *group_; }

 private:
  void load(const CheckpointReader& saved, const EpochSampler& sampler);
  void set_learning_rate();
  void report_step();
  void save();
  std::filesystem::path saved_checkpoint() const;

  std::shared_ptr<torch::nn::Module> module_;
  torch::optim::Optimizer& optimizer_;
  ProcessGroupPtr group_;
  TrainerOptions options_;
  std::vector<double> learning_rates_;  // of the groups of parameters, at construction
  std::optional<GradScaler> scaler_;
  std::unique_ptr<AsyncCheckpointer> checkpointer_;

  std::int64_t step_ = 0;
  std::int64_t saved_step_ = 0;
  std::int64_t epoch_ = 0;
  std::size_t position_ = 0;    // in the epoch, of all ranks together
  std::size_t epoch_size_ = 0;  // the position at the end of an epoch
  std::uint64_t seed_ = 0;      // of the sampler
  std::size_t began_at_ = 0;    // the position at which this epoch began or continued
  std::int64_t step_in_epoch_ = 0;
  std::int64_t steps_in_epoch_ = 0;
  std::int64_t samples_in_epoch_ = 0;
  TimePoint epoch_began_ = {};
  Metrics metrics_;       // of this epoch
  Metrics step_metrics_;  // of this step
  std::int64_t step_samples_ = 0;
  std::map<std::string, double> last_metrics_;
};

}  // namespace peal::train
