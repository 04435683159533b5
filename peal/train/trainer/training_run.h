// A Trainer without its templates: options, steps, checkpoints.
#pragma once

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
  /// The largest norm of all gradients together; nothing: no limit.
  std::optional<double> clip_norm = {};
  /// The type in which forward computes: kBFloat16, or kHalf with a GradScaler; nothing: that of
  /// the parameters.
  std::optional<torch::ScalarType> autocast = {};
  /// Null: the learning rates of the optimizer.
  LearningRateFactor learning_rate = {};

  /// The folder of checkpoints; empty: none are saved. A run that finds checkpoints there continues
  /// from the last.
  std::filesystem::path checkpoints = {};
  /// Steps between two checkpoints; 0: one after each epoch.
  std::int64_t save_every = 0;
  int keep = 2;  // checkpoints that remain; 0: all

  /// A Trainer always averages by samples.
  DataParallelOptions parallel = {};
};

/// Why a run has ended.
enum class RunEnd : unsigned char {
  kComplete,
  kStopped,  // by a signal on some rank, or by request_stop
};

struct RunReport {
  RunEnd end = RunEnd::kComplete;
  std::int64_t steps = 0;                      // of the whole run, also before it continued
  std::map<std::string, double> metrics = {};  // of the last complete epoch
};

/// The parts of a Trainer that do not depend on its module.
class TrainingRun final {
 public:
  TrainingRun(std::shared_ptr<torch::nn::Module> module,
              torch::optim::Optimizer& optimizer,
              ProcessGroupPtr group,
              TrainerOptions options);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // ---- callbacks
  std::vector<std::function<void(const StepReport&)>> on_step;
  std::vector<std::function<void(const EpochReport&)>> on_epoch;
  std::vector<std::function<void(Checkpoint&)>> on_save;
  std::vector<std::function<void(const CheckpointReader&)>> on_load;

  // ---- a run
  /// Continues from the last checkpoint, if there is one, or where this run was stopped.
  /// Order: collective.
  void continue_run(EpochSampler& sampler);
  std::int64_t epoch() const { return epoch_; }
  void begin_epoch(std::int64_t epoch, std::int64_t steps_in_epoch);
  /// Runs backward for a loss that is the mean of `samples` samples.
  void backward(const torch::Tensor& loss, std::int64_t samples);
  /// After the gradients of all ranks were averaged: clips, steps the optimizer, and reports.
  void step();
  /// Saves if it is time, or if the run stops. Order: collective.
  void save_if_due(EpochSampler& sampler, bool stops);
  void end_epoch();
  void wait_for_saves();

  const TrainerOptions& options() const { return options_; }
  Metrics& metrics() { return metrics_; }
  ProcessGroup& group() { return *group_; }
  RunReport report(RunEnd end) const { return {end, step_, last_metrics_}; }

 private:
  /// Where the run was at its last checkpoint.
  struct Saved {
    std::int64_t step = 0;
    std::int64_t epoch = 0;
    std::size_t position = 0;
    friend bool operator==(const Saved&, const Saved&) = default;
  };

  void set_learning_rate();
  void save(std::int64_t epoch, std::size_t position);

  std::shared_ptr<torch::nn::Module> module_;
  torch::optim::Optimizer& optimizer_;
  ProcessGroupPtr group_;
  TrainerOptions options_;
  std::vector<double> learning_rates_;  // of the groups of parameters, at construction
  std::optional<GradScaler> scaler_;
  std::unique_ptr<AsyncCheckpointer> checkpointer_;

  std::int64_t step_ = 0;
  Saved saved_;
  std::optional<std::size_t> stopped_at_;  // the position in the epoch
  std::int64_t epoch_ = 0;
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
