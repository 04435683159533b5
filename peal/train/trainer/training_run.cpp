#include "peal/train/trainer/training_run.h"

#include <limits>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/checkpoint/checkpoint_folder.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/random_state.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/together.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/clip_grad_norm.h"
#include "peal/train/optim/optimizer_state.h"
#include "peal/train/optim/sharded_optimizer.h"
#include "peal/train/tensors/agreement.h"

namespace peal::train {
namespace {

void check(const TrainerOptions& options) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error(ErrorKind::kUsage, "a Trainer needs " + what);
  };
  require(options.epochs >= 1, c10::str("1 epoch or more, not ", options.epochs));
  require(options.accumulate >= 1,
          c10::str("1 batch or more for each step, not ", options.accumulate));
  require(!options.clip_norm || *options.clip_norm > 0,
          c10::str("a clip_norm of more than 0, not ", options.clip_norm.value_or(0)));
  const auto type = options.autocast.value_or(torch::kBFloat16);
  require(type == torch::kBFloat16 || type == torch::kHalf,
          c10::str("kBFloat16 or kHalf for autocast, not ", type));
  require(
      options.save_every >= 0 && options.keep >= 0,
      c10::str(
          "0 or more for save_every and keep, not ", options.save_every, " and ", options.keep));
}

/// Autocast and GradScaler are for the CPU.
void require_cpu_for_autocast(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) {
    if (parameter.is_cpu()) continue;
    throw Error(ErrorKind::kUnsupported,
                c10::str("a Trainer computes in 16 bits only on the CPU, and this module is on ",
                         parameter.device(),
                         ": leave out TrainerOptions::autocast"));
  }
}

/// The trainer averages by samples, so each SyncBatchNorm has to do the same.
void weight_losses_by_samples(torch::nn::Module& module) {
  for (const auto& child : module.modules()) {
    auto* const norm = dynamic_cast<SyncBatchNormImpl*>(child.get());
    if (norm != nullptr) norm->set_loss_weights(LossWeights::kBySamples);
  }
}

/// Throws unless the sampler gives this rank its part of the samples. A sampler for one rank is for
/// data that only this rank has.
void require_sampler_of_rank(const EpochSampler& sampler, const ProcessGroup& group) {
  if (sampler.ranks() == 1) return;
  if (sampler.rank() == group.rank() && sampler.ranks() == group.size()) return;
  throw Error(ErrorKind::kUsage,
              c10::str("the sampler is for rank ",
                       sampler.rank(),
                       " of ",
                       sampler.ranks(),
                       ", but this is rank ",
                       group.rank(),
                       " of ",
                       group.size(),
                       ": make the sampler with the rank and the size of the Trainer's group"));
}

/// What all ranks must have in common, so that they take the same steps.
std::vector<std::string> lines_of(const TrainerOptions& options) {
  return {c10::str("epochs = ", options.epochs),
          c10::str("accumulate = ", options.accumulate),
          c10::str("clip_norm = ", options.clip_norm.value_or(0)),
          c10::str("autocast = ", options.autocast.value_or(torch::ScalarType::Undefined)),
          c10::str("checkpoints are ", options.checkpoints.empty() ? "not saved" : "saved"),
          c10::str("save_every = ", options.save_every),
          c10::str("keep = ", options.keep)};
}

/// Of data that each rank has for itself, size and seed may differ.
std::vector<std::string> lines_of(const EpochSampler& sampler) {
  std::vector<std::string> lines = {c10::str("ranks = ", sampler.ranks())};
  if (sampler.ranks() > 1) {
    lines.push_back(c10::str("size = ", sampler.size()));
    lines.push_back(c10::str("seed = ", sampler.seed()));
  }
  return lines;
}

/// A checkpoint has one position, which all ranks share.
void require_shared_data(const EpochSampler& sampler, const ProcessGroup& group) {
  if (sampler.ranks() > 1 || group.size() == 1) return;
  throw Error(ErrorKind::kUnsupported,
              "a Trainer cannot continue in data that each rank has for itself: leave out "
              "TrainerOptions::checkpoints, or share out the data by a sampler for all ranks");
}

/// The names of the parts and values of a checkpoint.
constexpr const char* kModel = "model";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kEpoch = "epoch";
constexpr const char* kPosition = "position";
constexpr const char* kEpochSize = "sampler.size";
constexpr const char* kSeed = "sampler.seed";

/// Throws if the position in the checkpoint would lose or repeat samples.
void require_same_order(const CheckpointReader& saved, const EpochSampler& sampler) {
  const auto size = saved.values().number<std::size_t>(kEpochSize);
  const auto seed = saved.values().number<std::uint64_t>(kSeed);
  if (size == sampler.size() && seed == sampler.seed()) return;
  throw Error(ErrorKind::kUsage,
              c10::str(saved.path().string(),
                       " was saved in the middle of an epoch of ",
                       size,
                       " samples with seed ",
                       seed,
                       ", but the sampler has ",
                       sampler.size(),
                       " samples and seed ",
                       sampler.seed(),
                       ": continue with the same data and seed, or from a checkpoint at the end of "
                       "an epoch"));
}

/// The part of the state that this rank has.
OptimizerState state_of(const torch::optim::Optimizer& optimizer, const torch::nn::Module& module) {
  const auto* const sharded = dynamic_cast<const ShardedOptimizer*>(&optimizer);
  return read_optimizer_state(sharded != nullptr ? sharded->local() : optimizer,
                              module.named_parameters());
}

void load_state(torch::optim::Optimizer& optimizer,
                const torch::nn::Module& module,
                const OptimizerState& state) {
  if (auto* const sharded = dynamic_cast<ShardedOptimizer*>(&optimizer)) {
    sharded->load_state(state);
  } else {
    load_optimizer_state(optimizer, module.named_parameters(), state);
  }
}

void store(const GradScalerState& state, Values& values) {
  values.set("scaler.scale", state.scale);
  values.set("scaler.growth_tracker", state.growth_tracker);
}

GradScalerState restored(const Values& values, GradScalerState state) {
  state.scale = values.number<double>("scaler.scale");
  state.growth_tracker = values.number<std::int64_t>("scaler.growth_tracker");
  return state;
}

}  // namespace

TrainingRun::TrainingRun(std::shared_ptr<torch::nn::Module> module,
                         torch::optim::Optimizer& optimizer,
                         ProcessGroupPtr group,
                         TrainerOptions options)
    : module_(std::move(module)),
      optimizer_(optimizer),
      group_(std::move(group)),
      options_(std::move(options)) {
  check(options_);
  if (options_.autocast) require_cpu_for_autocast(*module_);
  require_agreement(
      *group_,
      {.what = "TrainerOptions", .advice = "give the Trainer the same options on every rank"},
      lines_of(options_),
      options_.parallel.timeout);
  for (const auto& parameters : optimizer_.param_groups()) {
    learning_rates_.push_back(parameters.options().get_lr());
  }
  if (options_.autocast == torch::kHalf) scaler_.emplace();
  if (options_.checkpoints.empty()) return;
  const bool is_divided = dynamic_cast<ShardedOptimizer*>(&optimizer_) != nullptr;
  const SaveOptions saving{.writers = is_divided ? Writers::kAllRanks : Writers::kRank0,
                           .keep = options_.keep,
                           .timeout = options_.parallel.timeout};
  checkpointer_ = std::make_unique<AsyncCheckpointer>(group_, options_.checkpoints, saving);
}

TrainingRun::~TrainingRun() = default;

void TrainingRun::begin(EpochSampler& sampler) {
  const Timeout timeout = options_.parallel.timeout;
  require_agreement(*group_,
                    {.what = "sampler for a Trainer",
                     .advice = "make the sampler with the same size and seed on every rank"},
                    lines_of(sampler),
                    timeout);
  Ranks(*group_, timeout).together([&] { require_sampler_of_rank(sampler, *group_); });
  if (checkpointer_) require_shared_data(sampler, *group_);
  std::filesystem::path from;
  if (checkpointer_) {
    prepare_checkpoint_folder(*group_, options_.checkpoints, timeout);
    if (const auto saved = open_latest_checkpoint(*group_, options_.checkpoints, timeout)) {
      load(*saved, sampler);
      from = saved->path();
    }
  }
  sampler.set_epoch(static_cast<std::uint64_t>(epoch_));
  if (position_ > 0) sampler.seek(position_);
  epoch_size_ = sampler.size();
  seed_ = sampler.seed();
  const StartReport report{.epoch = epoch_, .step = step_, .checkpoint = from};
  for (const auto& call : on_start) call(report);
}

void TrainingRun::load(const CheckpointReader& saved, const EpochSampler& sampler) {
  const auto position = saved.values().number<std::size_t>(kPosition);
  if (position > 0) require_same_order(saved, sampler);
  saved.load_module(kModel, *module_);
  load_state(optimizer_, *module_, saved.optimizer(kOptimizer));
  load_random_state(saved, group_->rank(), group_->size());
  if (scaler_) scaler_->load(restored(saved.values(), scaler_->state()));
  step_ = saved_step_ = saved.step();
  epoch_ = saved.values().number<std::int64_t>(kEpoch);
  position_ = position;
  for (const auto& call : on_load) call(saved);
}

void TrainingRun::begin_epoch(std::int64_t steps_in_epoch) {
  began_at_ = position_;
  step_in_epoch_ = 0;
  steps_in_epoch_ = steps_in_epoch;
  samples_in_epoch_ = 0;
  step_samples_ = 0;  // a callback may have thrown in the last step
  step_metrics_.clear();
  metrics_.clear();
  weight_losses_by_samples(*module_);
  epoch_began_ = Clock::now();
}

void TrainingRun::backward(const torch::Tensor& loss, std::int64_t samples) {
  (scaler_ ? scaler_->scale(loss) : loss).backward();
  const auto value = loss.item<double>();
  metrics_.add("loss", value, static_cast<double>(samples));
  step_metrics_.add("loss", value, static_cast<double>(samples));
  step_samples_ += samples;
}

void TrainingRun::set_learning_rate() {
  if (!options_.learning_rate) return;
  const double factor = options_.learning_rate(step_);
  for (std::size_t i = 0; i < learning_rates_.size(); ++i) {
    optimizer_.param_groups()[i].options().set_lr(learning_rates_[i] * factor);
  }
}

void TrainingRun::step(std::size_t position) {
  set_learning_rate();
  if (scaler_ && options_.clip_norm) scaler_->unscale_(optimizer_);
  if (options_.clip_norm) clip_grad_norm_(module_->parameters(), *options_.clip_norm);
  if (scaler_) {
    scaler_->step(optimizer_);
    scaler_->update();
  } else {
    optimizer_.step();
  }
  step_ += 1;
  step_in_epoch_ += 1;
  position_ = position;
  samples_in_epoch_ += step_samples_;
  report_step();
}

void TrainingRun::report_step() {
  const auto means = step_metrics_.local();
  const StepReport report{
      .epoch = epoch_,
      .step = step_,
      .step_in_epoch = step_in_epoch_,
      .steps_in_epoch = steps_in_epoch_,
      .loss = means.empty() ? std::numeric_limits<double>::quiet_NaN() : means.at("loss"),
      .samples = step_samples_,
      .learning_rate = optimizer_.param_groups().front().options().get_lr()};
  step_metrics_.clear();
  step_samples_ = 0;
  for (const auto& call : on_step) call(report);
}

void TrainingRun::save_if_due(bool stops) {
  const bool is_time = options_.save_every > 0 && step_ % options_.save_every == 0;
  if (is_time || stops) save();
}

void TrainingRun::end_epoch() {
  if (step_in_epoch_ == 0 && began_at_ == 0) {
    throw Error(ErrorKind::kUsage,
                c10::str("an epoch of ",
                         epoch_size_,
                         " samples has no batch on any rank: use more samples, or a sampler and a "
                         "loader that drop no samples"));
  }
  if (step_in_epoch_ > 0) {
    last_metrics_ = metrics_.reduce(*group_, options_.parallel.timeout);
    const EpochReport report{.epoch = epoch_,
                             .step = step_,
                             .metrics = last_metrics_,
                             .samples = samples_in_epoch_,
                             .duration = Clock::now() - epoch_began_};
    for (const auto& call : on_epoch) call(report);
  }
  epoch_ += 1;
  position_ = 0;
  if (options_.save_every == 0 || epoch_ == options_.epochs) save();
}

void TrainingRun::save() {
  // The step may have been saved already, at the end of the epoch. Not every file system can
  // replace a checkpoint.
  if (!checkpointer_ || saved_step_ == step_) return;
  Checkpoint now{.step = step_};
  now.models[kModel] = module_tensors(*module_);
  now.optimizers[kOptimizer] = state_of(optimizer_, *module_);
  const bool epoch_is_over = position_ == epoch_size_;
  now.values.set(kEpoch, epoch_is_over ? epoch_ + 1 : epoch_);
  now.values.set(kPosition, epoch_is_over ? 0 : position_);
  now.values.set(kEpochSize, epoch_size_);
  now.values.set(kSeed, seed_);
  if (scaler_) store(scaler_->state(), now.values);
  save_random_state(now);
  for (const auto& call : on_save) call(now);
  checkpointer_->save(now);
  saved_step_ = step_;
}

std::filesystem::path TrainingRun::saved_checkpoint() const {
  if (!checkpointer_ || saved_step_ == 0) return {};
  return options_.checkpoints / checkpoint_name(saved_step_);
}

RunReport TrainingRun::finish(RunEnd end, int signal) {
  if (checkpointer_) checkpointer_->wait();
  std::vector<std::int32_t> of_some_rank = {signal};
  if (end == RunEnd::kStopped) {
    group_->all_reduce(of_some_rank, {.op = ReduceOp::kMax, .timeout = options_.parallel.timeout});
  }
  const RunReport report{.end = end,
                         .signal = end == RunEnd::kStopped ? of_some_rank[0] : 0,
                         .epoch = epoch_,
                         .steps = step_,
                         .checkpoint = saved_checkpoint(),
                         .metrics = last_metrics_};
  for (const auto& call : on_end) call(report);
  return report;
}

}  // namespace peal::train
