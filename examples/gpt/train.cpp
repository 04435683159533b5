// Trains a GPT of about 10 million parameters on the characters of a text (from build/release/bin):
//   peal run -n 2 ./gpt --data input.txt
// Without `--data`, the text is generated. The batches of a step do not depend on the number of
// ranks, so neither does the loss curve. `--help` lists all options.
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/data/random.h"
#include "peal/train/samplers/epoch_sampler.h"
#include "peal/train/trainer/reports.h"
#include "peal/train/trainer/trainer.h"

#include "exit_code.h"
#include "gpt/gpt.h"
#include "gpt/options.h"
#include "gpt/text.h"

namespace {

namespace train = peal::train;
using torch::Tensor;

/// Random pieces of the text. Piece i depends on (seed, i) only.
class Pieces final : public torch::data::datasets::Dataset<Pieces> {
 public:
  Pieces(const gpt::Text& text, const Options& options)
      : text_(torch::tensor(text.characters)), context_(options.context), seed_(options.seed) {}

  torch::data::Example<> get(std::size_t index) override {
    train::data::Random random({seed_, index});
    const auto starts = static_cast<std::uint64_t>(text_.size(0) - context_);
    const auto begin = static_cast<std::int64_t>(random.below(starts));
    return {text_.slice(0, begin, begin + context_),
            text_.slice(0, begin + 1, begin + context_ + 1)};
  }
  std::optional<std::size_t> size() const override { return std::nullopt; }  // no end

 private:
  Tensor text_;
  std::int64_t context_;
  std::uint64_t seed_;
};

/// The length of the trainer's epochs. It does not depend on `--steps`, so neither does a
/// checkpoint, and a run can continue with more steps. The last epoch may be shorter.
constexpr std::int64_t kStepsPerEpoch = 50;

/// Each step takes the next pieces.
train::EpochSampler sampler_of(const Options& options, const peal::ProcessGroup& group) {
  const auto pieces_of_epoch = [](std::size_t size, std::uint64_t /*seed*/, std::uint64_t epoch) {
    std::vector<std::size_t> pieces(size);
    std::iota(pieces.begin(), pieces.end(), epoch * size);
    return pieces;
  };
  return train::EpochSampler({.size = static_cast<std::size_t>(kStepsPerEpoch * options.batch),
                              .rank = group.rank(),
                              .ranks = group.size(),
                              .order = pieces_of_epoch});
}

/// The mean loss over all ranks, every few steps. Checkpoints have the curve so far and the sum for
/// its next point, so a run that continues has the whole curve.
class LossCurve {
 public:
  LossCurve(peal::ProcessGroupPtr group, const Options& options)
      : group_(std::move(group)), options_(options) {}

  void step(const train::StepReport& report) {
    // Each rank has the same number of samples, so the mean of the ranks' losses is the loss of the
    // step.
    double loss = report.loss;
    group_->all_reduce(std::span(&loss, 1), {.op = peal::ReduceOp::kAvg});
    sum_ += loss;
    steps_ += 1;
    if (report.step % options_.report_every == 0) add_point(report.step);
  }

  void save(train::Checkpoint& checkpoint) const {
    checkpoint.values.set(kPoints, points_);
    checkpoint.values.set(kSum, sum_);
    checkpoint.values.set(kSteps, steps_);
  }

  void load(const train::CheckpointReader& checkpoint) {
    points_ = checkpoint.values().text(kPoints);
    sum_ = checkpoint.values().number<double>(kSum);
    steps_ = checkpoint.values().number<std::int64_t>(kSteps);
    write();
  }

 private:
  static constexpr const char* kPoints = "loss_curve";
  static constexpr const char* kSum = "loss_curve.sum";
  static constexpr const char* kSteps = "loss_curve.steps";

  void add_point(std::int64_t step) {
    const double loss = std::exchange(sum_, 0) / static_cast<double>(std::exchange(steps_, 0));
    if (group_->rank() != 0) return;
    std::ostringstream point;
    point << step << ' ' << std::setprecision(12) << loss << '\n';
    points_ += point.str();
    write();
    std::cout << "step " << step << "  loss " << std::setprecision(5) << loss << std::endl;
  }

  void write() const {
    if (group_->rank() != 0 || options_.report.empty()) return;
    std::ofstream file(options_.report);
    file << points_ << std::flush;
    if (!file)
      throw std::runtime_error("cannot write the loss curve to " + options_.report.string());
  }

  peal::ProcessGroupPtr group_;
  const Options& options_;
  std::string points_;      // on rank 0: lines with a step and its loss
  double sum_ = 0;          // of the losses since the last point
  std::int64_t steps_ = 0;  // since the last point
};

/// Whether the last checkpoint has all steps. Then reports its curve, because the trainer would
/// take further steps to the end of the epoch. Order: collective.
bool is_complete_already(const Options& options, peal::ProcessGroup& group, LossCurve& curve) {
  if (options.checkpoints.empty()) return false;
  const auto saved = train::open_latest_checkpoint(group, options.checkpoints);
  if (saved == nullptr || saved->step() < options.steps) return false;
  curve.load(*saved);
  if (group.rank() == 0) {
    std::cout << "Training is complete already, after step " << saved->step() << " in "
              << saved->path().string() << ". To train longer, increase --steps, which is "
              << options.steps << std::endl;
  }
  return true;
}

void print_start(const train::StartReport& report) {
  if (report.step == 0) return;
  std::cout << "Training continues after step " << report.step << " in "
            << report.checkpoint.string() << std::endl;
}

void print_end(const train::RunReport& report, const Options& options) {
  const bool is_complete = report.steps >= options.steps;
  std::cout << (is_complete ? "Training is complete after" : "Stopped after") << " step "
            << report.steps << '.';
  if (!report.checkpoint.empty()) {
    std::cout << " The checkpoint is in " << report.checkpoint.string()
              << (is_complete ? "." : "; run the same command again to continue.");
  } else if (!is_complete) {
    std::cout << " No checkpoint was saved. To continue after a stop, set --checkpoints.";
  }
  std::cout << std::endl;
}

/// Returns the exit code of the program.
int run(const Options& options) {
  const gpt::Text text = options.data.empty() ? gpt::generated_text(200'000, options.seed)
                                              : gpt::read_text(options.data);
  if (std::ssize(text.characters) <= options.context) {
    throw std::runtime_error("the text is shorter than a sequence: use a smaller --context");
  }
  const peal::ProcessGroupPtr group = peal::init_process_group();
  if (options.batch % group->size() != 0) {
    throw std::runtime_error("--batch is not a multiple of the number of ranks");
  }
  LossCurve curve(group, options);
  if (is_complete_already(options, *group, curve)) return 0;
  torch::manual_seed(options.seed);
  Gpt model(GptOptions{.vocabulary = std::ssize(text.vocabulary),
                       .context = options.context,
                       .width = options.width,
                       .heads = options.heads,
                       .layers = options.layers});
  if (options.in_double) model->to(torch::kDouble);
  torch::optim::AdamW optimizer(model->parameters(),
                                torch::optim::AdamWOptions(options.learning_rate));
  train::Trainer trainer(
      model,
      optimizer,
      group,
      {.epochs = (options.steps + kStepsPerEpoch - 1) / kStepsPerEpoch,
       .clip_norm = 1.0,
       .learning_rate = train::cosine_factor(options.steps + 1, options.steps / 10, 0.1),
       .checkpoints = options.checkpoints,
       .save_every = options.checkpoints.empty() ? 0 : 50});
  // A request ends the run after the next step.
  const auto stop_in_time = [&](std::int64_t step) {
    if (step + 1 == options.steps) trainer.request_stop();
  };
  trainer.on_start([&](const train::StartReport& report) { stop_in_time(report.step); });
  trainer.on_step([&](const train::StepReport& report) {
    curve.step(report);
    stop_in_time(report.step);
  });
  if (group->rank() == 0) {
    trainer.on_start(print_start);
    trainer.on_end([&](const train::RunReport& report) { print_end(report, options); });
  }
  trainer.on_save([&](train::Checkpoint& checkpoint) { curve.save(checkpoint); });
  trainer.on_load([&](const train::CheckpointReader& checkpoint) { curve.load(checkpoint); });

  Pieces pieces(text, options);
  train::EpochSampler sampler = sampler_of(options, *group);
  const auto loader =
      torch::data::make_data_loader(pieces.map(torch::data::transforms::Stack<>()),
                                    sampler,
                                    static_cast<std::size_t>(options.batch / group->size()));
  const auto report = trainer.fit(*loader, sampler, [](auto& net, auto& batch) {
    return torch::cross_entropy_loss(net.forward(batch.data).flatten(0, 1), batch.target.flatten());
  });
  return report.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  return exit_code_of("gpt", [&] {
    Options options;
    if (const std::optional<int> code = parse(argc, argv, options)) return *code;
    return run(options);
  });
}
