// Trains a GPT of about 10 million parameters on the characters of a text (from build/release/bin):
//   peal run -n 2 ./gpt --data input.txt
// Without `--data`, the text is generated. The batches of a step do not depend on the number of
// ranks, so neither does the loss curve. `--help` lists all options.
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/checkpoint/checkpoint.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/data/random.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/trainer/progress_bar.h"
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
      : text_(torch::tensor(text.characters)),
        context_(options.context),
        count_(options.steps * options.batch),
        seed_(options.seed) {}

  torch::data::Example<> get(std::size_t index) override {
    train::data::Random random({seed_, index});
    const auto starts = static_cast<std::uint64_t>(text_.size(0) - context_);
    const auto begin = static_cast<std::int64_t>(random.below(starts));
    return {text_.slice(0, begin, begin + context_),
            text_.slice(0, begin + 1, begin + context_ + 1)};
  }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(count_); }

 private:
  Tensor text_;
  std::int64_t context_;
  std::int64_t count_;
  std::uint64_t seed_;
};

/// The mean loss over all ranks, every few steps. Checkpoints have the curve so far, so a run that
/// continues has the whole curve. Its first new point averages the steps after the checkpoint.
class LossCurve {
 public:
  LossCurve(peal::ProcessGroupPtr group, const Options& options)
      : group_(std::move(group)), options_(options) {}

  void step(const train::StepReport& report) {
    if (report.samples > 0) sums_.add("loss", report.loss, static_cast<double>(report.samples));
    if (report.step % options_.report_every != 0) return;
    const double loss = sums_.reduce(*group_).at("loss");
    sums_.clear();
    if (group_->rank() != 0) return;
    std::ostringstream point;
    point << report.step << ' ' << std::setprecision(12) << loss << '\n';
    points_ += point.str();
    write();
    std::cout << "step " << report.step << "  loss " << std::setprecision(5) << loss << std::endl;
  }

  void save(train::Checkpoint& checkpoint) const { checkpoint.values.set(kName, points_); }

  void load(const train::CheckpointReader& checkpoint) {
    points_ = checkpoint.values().text(kName);
    write();
  }

 private:
  static constexpr const char* kName = "loss_curve";

  void write() const {
    if (group_->rank() != 0 || options_.report.empty()) return;
    std::ofstream file(options_.report);
    file << points_ << std::flush;
    if (!file)
      throw std::runtime_error("cannot write the loss curve to " + options_.report.string());
  }

  peal::ProcessGroupPtr group_;
  const Options& options_;
  train::Metrics sums_;
  std::string points_;  // on rank 0: lines with a step and its loss
};

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
      {.clip_norm = 1.0,
       .learning_rate = train::cosine_factor(options.steps + 1, options.steps / 10, 0.1),
       .checkpoints = options.checkpoints,
       .save_every = options.checkpoints.empty() ? 0 : 50});
  LossCurve curve(group, options);
  trainer.on_step([&](const train::StepReport& report) { curve.step(report); });
  train::ProgressBar bar(std::cout, group->rank(), /*epochs=*/1);
  trainer.on_start([&](const train::StartReport& report) { bar.start(report); });
  trainer.on_end([&](const train::RunReport& report) { bar.end(report); });
  trainer.on_save([&](train::Checkpoint& checkpoint) { curve.save(checkpoint); });
  trainer.on_load([&](const train::CheckpointReader& checkpoint) { curve.load(checkpoint); });

  Pieces pieces(text, options);
  train::DistributedSampler sampler(*pieces.size(),
                                    group->rank(),
                                    group->size(),
                                    {.order = train::SamplerOptions::Order::kSequential,
                                     .remainder = train::data::Remainder::kUneven});
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
