// Trains on handwritten digits with a Trainer, from one program (from build/release/bin):
//   ./trainer --processes 2          starts two processes
//   peal run -n 2 ./trainer          runs as the ranks of a job
// Ctrl-C ends all ranks after the same step, with exit code 130. With `--checkpoints DIR`, the next
// run continues there.
// `--data DIR` reads MNIST's files; without it the digits are drawn. `--gpus 0 1` gives each of two
// ranks a GPU. `--help` lists all options.
#include "peal/train/trainer/trainer.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/trainer/devices.h"
#include "peal/train/trainer/progress_bar.h"

#include "exit_code.h"
#include "mnist/digits.h"
#include "mnist/images.h"
#include "mnist/mnist_files.h"
#include "mnist/net.h"
#include "trainer/options.h"

namespace {

namespace train = peal::train;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Options& options,
                                                        const peal::ProcessGroupPtr& group,
                                                        const Net& net) {
  const torch::optim::AdamWOptions adamw(2e-3);
  if (!options.shares_state) return std::make_unique<torch::optim::AdamW>(net->parameters(), adamw);
  return std::make_unique<train::ZeroRedundancyOptimizer<torch::optim::AdamW>>(group, net, adamw);
}

/// A data loader for this rank's part of the pictures.
auto make_loader(const mnist::ImageDataset& pictures,
                 const train::DistributedSampler& sampler,
                 std::size_t batch) {
  return torch::data::make_data_loader(pictures, sampler, batch);
}

torch::Device device_of_rank(const Options& options) {
  if (options.gpus.empty()) return torch::kCPU;
  const char* const rank = std::getenv("LOCAL_RANK");
  return train::device_of(rank == nullptr ? 0 : std::atoi(rank),
                          train::choose_devices(options.gpus));
}

/// One rank. Returns the exit code of the program.
int run(const Options& options) {
  const mnist::DigitSets digits =
      options.data.empty() ? mnist::generated_digits(1) : mnist::read_mnist(options.data);
  const mnist::ImageDataset pictures(digits.train), held_out(digits.test);
  const peal::ProcessGroupPtr group = peal::init_process_group();
  const torch::Device device = device_of_rank(options);

  torch::manual_seed(1);
  Net net(/*dropout_rate=*/0.25);
  net->to(device);
  torch::manual_seed(static_cast<std::uint64_t>(group->rank()));  // for dropout
  const auto optimizer = make_optimizer(options, group, net);
  train::TrainerOptions how{.epochs = options.epochs,
                            .accumulate = options.accumulate,
                            .clip_norm = 5.0,
                            .checkpoints = options.checkpoints};
  if (options.bf16) how.autocast = torch::kBFloat16;
  train::Trainer trainer(net, *optimizer, group, how);
  train::ProgressBar bar(std::cout, group->rank(), options.epochs);
  bar.show(trainer);

  using train::data::Remainder;
  train::DistributedSampler sampler(
      *pictures.size(), group->rank(), group->size(), {.remainder = Remainder::kUneven});
  const auto loader = make_loader(pictures, sampler, options.batch);
  const auto report = trainer.fit(*loader, sampler, [&](auto& model, auto& batch) {
    return torch::nll_loss(model.forward(batch.data.to(device)), batch.target.to(device));
  });
  if (report.end == train::RunEnd::kStopped) return report.exit_code();

  const train::DistributedSampler each_once(
      *held_out.size(),
      group->rank(),
      group->size(),
      {.order = train::SamplerOptions::Order::kSequential, .remainder = Remainder::kUneven});
  const auto tests = make_loader(held_out, each_once, 256);
  const auto means =
      trainer.evaluate(*tests, [&](Net::ContainedType& model, auto& batch, auto& metrics) {
        const auto samples = static_cast<double>(batch.target.size(0));
        const auto predicted = model.forward(batch.data.to(device)).argmax(1).cpu();
        const auto right = predicted.eq(batch.target).sum();
        metrics.add("accuracy", right.template item<double>() / samples, samples);
      });
  if (group->rank() == 0) std::cout << "accuracy " << means.at("accuracy") << std::endl;
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  return exit_code_of("trainer", [&] {
    Options options;
    if (const std::optional<int> code = parse(argc, argv, options)) return *code;
    if (std::getenv("WORLD_SIZE") != nullptr) return run(options);  // a rank of `peal run`
    const int ranks =
        options.gpus.empty() ? options.processes : static_cast<int>(options.gpus.size());
    const std::vector<int> codes = peal::spawn(
        ranks,
        [&](peal::Rank) { return run(options); },
        {.grace = std::chrono::minutes(1),  // after Ctrl-C: for the step and the checkpoint
         .report = [](std::string_view text) { std::cerr << "trainer: " << text << std::endl; }});
    return codes.front();  // all ranks have the same
  });
}
