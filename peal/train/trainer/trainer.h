// Trains a module on all ranks of a group: epochs, accumulation, mixed precision, checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>

#include "peal/group/process_group.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/data/shard.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/optim/autocast.h"
#include "peal/train/samplers/counted.h"
#include "peal/train/samplers/epoch_sampler.h"
#include "peal/train/trainer/evaluation_mode.h"
#include "peal/train/trainer/metrics.h"
#include "peal/train/trainer/reports.h"
#include "peal/train/trainer/training_run.h"

namespace peal::train {

/// Trains with DistributedDataParallel:
///   Trainer trainer(net, optimizer, group, {.epochs = 3, .checkpoints = "runs/mnist"});
///   trainer.fit(*loader, sampler, [](auto& model, auto& batch) {
///     return torch::nll_loss(model.forward(batch.data), batch.target);
///   });
///
/// A step is `accumulate` batches on each rank, and equals a step of one process on all these
/// samples, if the loss is the mean over the batch: ranks may have different numbers of batches, of
/// different sizes. All ranks take the same steps, also those without data. With
/// TrainerOptions::checkpoints, a run continues where the last one was saved, on any number of
/// ranks. SIGINT (Ctrl-C) or SIGTERM on any rank ends all ranks after the same step, with a
/// checkpoint. Then main should return RunReport::exit_code(), so that a script notices the
/// signal. A second signal ends the process at once. The launcher kills ranks whose step and
/// checkpoint take longer than its grace, which is 5 seconds unless you set `peal run --grace` or
/// SpawnOptions::grace. Then the steps since the last checkpoint are lost. `peal run` prints that
/// it killed ranks; spawn reports it to SpawnOptions::report, which is silent unless you set it.
///
/// A SyncBatchNorm is collective in forward, which a rank without data does not call: for such a
/// model, use a sampler that gives all ranks the same number of batches (kPad or kDrop).
///
/// Callbacks take the place of further options. They run on every rank:
///   trainer.on_start([](const StartReport& report) { ... });
///   trainer.on_step([](const StepReport& report) { ... });
///   trainer.on_epoch([](const EpochReport& report) { ... });
///   trainer.on_end([](const RunReport& report) { ... });
///   trainer.on_save([](Checkpoint& checkpoint) { ... });            // adds to the checkpoint
///   trainer.on_load([](const CheckpointReader& checkpoint) { ... });
/// Threads: one at a time.
/// Errors: those of DistributedDataParallel, of the loader and of the loss; of save_checkpoint, at
///   the next checkpoint or the end of fit(), because checkpoints are written meanwhile; usage
///   (options).
template <class Module>
class Trainer final {
 public:
  Trainer(std::shared_ptr<Module> module,
          torch::optim::Optimizer& optimizer,
          ProcessGroupPtr group,
          const TrainerOptions& options = {})
      : model_(module, group, by_samples(options.parallel)),
        run_(module, optimizer, group, options) {}
  /// For a module of TORCH_MODULE.
  Trainer(const torch::nn::ModuleHolder<Module>& holder,
          torch::optim::Optimizer& optimizer,
          ProcessGroupPtr group,
          const TrainerOptions& options = {})
      : Trainer(holder.ptr(), optimizer, std::move(group), options) {}

  void on_start(std::function<void(const StartReport&)> call) {
    run_.on_start.push_back(std::move(call));
  }
  void on_step(std::function<void(const StepReport&)> call) {
    run_.on_step.push_back(std::move(call));
  }
  void on_epoch(std::function<void(const EpochReport&)> call) {
    run_.on_epoch.push_back(std::move(call));
  }
  void on_end(std::function<void(const RunReport&)> call) {
    run_.on_end.push_back(std::move(call));
  }
  void on_save(std::function<void(Checkpoint&)> call) { run_.on_save.push_back(std::move(call)); }
  void on_load(std::function<void(const CheckpointReader&)> call) {
    run_.on_load.push_back(std::move(call));
  }

  /// Ends fit() on all ranks after the next step, with a checkpoint. For callbacks, on any rank.
  void request_stop() { model_.reducer().request_stop(); }

  /// Trains until TrainerOptions::epochs. `loss(model, batch)` returns the mean loss of the batch,
  /// and may add to metrics(). `sampler` is the sampler of the loader, or a copy of it. Each epoch
  /// begins with the module in training mode.
  ///
  /// A second call continues the run: from the last checkpoint, or after the last step if no
  /// checkpoints are saved.
  /// Order: collective.
  /// Errors: also usage (the last checkpoint was saved in the middle of an epoch of other data, or
  ///   in another order; a sampler of another rank; an epoch without a step), and those of
  ///   CheckpointReader. On every rank the same: mismatch (ranks have other options), resource (the
  ///   folder of checkpoints cannot be written; a file of the last checkpoint is missing or
  ///   damaged: the trainer never takes an older one by itself).
  template <class Loader, class Loss>
  RunReport fit(Loader& loader, EpochSampler& sampler, Loss&& loss) {
    const std::unique_ptr<StopRequests> requests = run_.group().note_stop_requests();
    model_.reducer().clear_stop();
    run_.begin(sampler);
    RunEnd end = RunEnd::kComplete;
    while (end == RunEnd::kComplete && run_.epoch() < run_.options().epochs) {
      sampler.set_epoch(static_cast<std::uint64_t>(run_.epoch()));
      end = run_epoch(loader, sampler, loss, *requests);
    }
    return run_.finish(end, requests->signal());
  }

  /// The means over all samples of what `measure(model, batch, metrics)` adds to the metrics,
  /// without gradients and in evaluation mode. Each rank may have its own number of batches.
  /// Order: collective.
  /// Errors: those of the loader, of `measure` and of Metrics::reduce.
  template <class Loader, class Measure>
  std::map<std::string, double> evaluate(Loader& loader, Measure&& measure) {
    const torch::NoGradGuard no_grad;
    const EvaluationMode evaluating(*model_);
    Metrics metrics;
    for (auto& batch : loader) measure(*model_, batch, metrics);
    return metrics.reduce(run_.group(), run_.options().parallel.timeout);
  }

  /// Of the running epoch. "loss" is added by the trainer.
  Metrics& metrics() { return run_.metrics(); }
  DistributedDataParallel<Module>& model() { return model_; }

 private:
  static DataParallelOptions by_samples(DataParallelOptions options) {
    options.average = Average::kBySamples;
    return options;
  }

  template <class Loader, class Loss>
  RunEnd run_epoch(Loader& loader,
                   EpochSampler& sampler,
                   Loss& loss,
                   const StopRequests& requests) {
    model_->train();
    run_.begin_epoch(steps_left(loader, sampler));
    auto batches = counted(loader, sampler);
    auto batch = batches.begin();
    bool is_used = false;  // whether `batch` was trained on; the sampler's position counts it
    for (;;) {
      if (requests.has_come()) request_stop();
      int passes = 0;
      model_->zero_grad();
      for (; passes < run_.options().accumulate; ++passes) {
        if (is_used && batch != batches.end()) ++batch;
        is_used = true;
        if (batch == batches.end()) break;
        train_on(*batch, loss, passes + 1 == run_.options().accumulate);
      }
      if (passes == 0 && !model_.pass_without_data()) break;
      if (passes > 0 && passes < run_.options().accumulate) model_.reducer().average_window();
      run_.step(steps_left(loader, sampler) > 0 ? sampler.position() : sampler.size());
      const bool stops = model_.reducer().stop_was_requested();
      run_.save_if_due(stops);
      if (stops) return RunEnd::kStopped;
    }
    run_.end_epoch();
    return RunEnd::kComplete;
  }

  template <class Batch, class Loss>
  void train_on(Batch& batch, Loss& loss, bool is_last_of_step) {
    std::optional<NoSync> no_sync;
    if (!is_last_of_step) no_sync.emplace(model_.reducer());
    torch::Tensor value;
    {
      std::optional<Autocast> autocast;
      if (run_.options().autocast) autocast.emplace(run_.options().autocast);
      value = loss(model_, batch);
    }
    run_.backward(value, model_.reducer().samples());
  }

  /// The steps for which this rank has data, from the sampler's position to the end of the epoch.
  template <class Loader>
  std::int64_t steps_left(const Loader& loader, const EpochSampler& sampler) const {
    const auto short_batch =
        loader.options().drop_last ? data::ShortBatch::kDrop : data::ShortBatch::kKeep;
    const auto batches =
        static_cast<std::int64_t>(sampler.batches(loader.options().batch_size, short_batch));
    const std::int64_t accumulate = run_.options().accumulate;
    return (batches + accumulate - 1) / accumulate;
  }

  DistributedDataParallel<Module> model_;
  TrainingRun run_;
};

}  // namespace peal::train
