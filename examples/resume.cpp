// Trains on several ranks, saves checkpoints while training continues, and continues from the last
// one when it is called again, also with another number of ranks:
//   peal run -n 2 build/release/bin/resume FOLDER
//   peal run -n 3 build/release/bin/resume FOLDER
#include <filesystem>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/train/checkpoint/async_checkpointer.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/random_state.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/samplers/distributed_sampler.h"

#include "command_line.h"

using namespace peal::train;

constexpr std::size_t kSamples = 240;
constexpr std::size_t kBatch = 8;  // on each rank

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::relu(hidden(x))); }
  torch::nn::Linear hidden{4, 16};
  torch::nn::Linear out{16, 1};
};
TORCH_MODULE(Net);

/// The state of the training, with all that a later run needs.
Checkpoint checkpoint_of(const Net& net,
                         const torch::optim::Optimizer& optimizer,
                         const DistributedSampler& sampler,
                         std::int64_t step) {
  Checkpoint now{.step = step};
  now.models["model"] = module_tensors(*net);
  now.optimizers["optimizer"] = read_optimizer_state(optimizer, net->named_parameters());
  now.values.set("epoch", sampler.epoch());
  now.values.set("position", sampler.position());
  save_random_state(now);
  return now;
}

/// Returns the step from which training continues.
std::int64_t resume(const peal::ProcessGroupPtr& group,
                    const std::filesystem::path& folder,
                    Net& net,
                    torch::optim::Optimizer& optimizer,
                    DistributedSampler& sampler) {
  const auto saved = open_latest_checkpoint(*group, folder);
  if (!saved) return 0;
  saved->load_module("model", *net);  // each rank reads the files
  load_optimizer_state(optimizer, net->named_parameters(), saved->optimizer("optimizer"));
  sampler.set_epoch(saved->values().number<std::uint64_t>("epoch"));
  sampler.seek(saved->values().number<std::size_t>("position"));
  load_random_state(*saved, group->rank(), group->size());
  return saved->step();
}

int main(int argc, char** argv) {
  CLI::App app(
      "Trains for 40 steps on all ranks of the job, and continues when it is called again");
  std::filesystem::path folder = "checkpoints";
  app.add_option("folder", folder, "Folder of the checkpoints")
      ->check(is_not_empty())
      ->capture_default_str();
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  torch::set_num_threads(1);
  const auto group = peal::init_process_group();
  const auto random = at::detail::createCPUGenerator(1);
  const torch::Tensor inputs = torch::randn({kSamples, 4}, random);
  const torch::Tensor targets = inputs.square().sum(1, /*keepdim=*/true);

  Net net;
  DistributedDataParallel model(net, group);
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  DistributedSampler sampler(kSamples, group->rank(), group->size());
  std::int64_t step = resume(group, folder, net, optimizer, sampler);
  const std::int64_t last_step = step + 40;

  AsyncCheckpointer checkpointer(group, folder, {.keep = 2});
  while (step < last_step) {
    auto batch = sampler.next(kBatch);
    if (!batch) {
      sampler.set_epoch(sampler.epoch() + 1);
      continue;
    }
    const torch::Tensor chosen =
        torch::tensor(std::vector<std::int64_t>(batch->begin(), batch->end()));
    optimizer.zero_grad();
    torch::mse_loss(model.forward(inputs.index({chosen})), targets.index({chosen})).backward();
    optimizer.step();
    if (++step % 10 == 0) checkpointer.save(checkpoint_of(net, optimizer, sampler, step));
  }
  checkpointer.wait();
  if (group->rank() != 0) return 0;
  const double loss = torch::mse_loss(net->forward(inputs), targets).item<double>();
  std::cout << "step " << step << ": loss " << loss << std::endl;
}
