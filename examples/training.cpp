// The code of docs/guide/train.md that no other example has; a test compares the two.
//   build/release/bin/peal run -n 2 build/release/bin/training
#include <stdlib.h>

#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/pickled_file.h"
#include "peal/train/checkpoint/stored_tensors.h"
#include "peal/train/ddp/compression_hooks.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/power_sgd.h"
#include "peal/train/nn/convert_sync_batch_norm.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/autocast.h"
#include "peal/train/optim/clip_grad_norm.h"
#include "peal/train/optim/grad_scaler.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/replicas/data_parallel.h"
#include "peal/train/samplers/counted.h"
#include "peal/train/samplers/distributed_sampler.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/trainer/devices.h"
#include "peal/train/trainer/trainer.h"

#include "command_line.h"
#include "mnist/digits.h"
#include "mnist/images.h"
#include "mnist/net.h"

namespace {

namespace fs = std::filesystem;

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("the check failed: ") + what);
}

torch::nn::Sequential make_classifier() {
  return torch::nn::Sequential(torch::nn::Flatten(),
                               torch::nn::Linear(28 * 28, 32),
                               torch::nn::ReLU(),
                               torch::nn::Linear(32, 10),
                               torch::nn::LogSoftmax(1));
}

/// Calls spawn, which forks: before the first tensor operation.
void start_ranks() {
  const auto sums = peal::spawn(3, [](peal::Rank rank) {
    const auto group = peal::init_process_group();
    float value = static_cast<float>(rank);
    group->all_reduce(std::span(&value, 1));
    return value;
  });  // {3, 3, 3}: the result of each rank
  expect(sums == std::vector<float>{3, 3, 3}, "each rank has returned the sum");
}

void a_loop_of_your_own(const peal::ProcessGroupPtr& group,
                        const mnist::ImageDataset& digits,
                        const fs::path& folder) {
  const int epochs = 2;
  Net net(/*dropout_rate=*/0.25);  // any module, unchanged
  peal::train::DistributedDataParallel model(net, group);
  peal::train::DistributedSampler sampler(*digits.size(), group->rank(), group->size());
  const auto loader = torch::data::make_data_loader(digits, sampler, 64);  // 64 on each rank
  torch::optim::SGD optimizer(net->parameters(), 0.1);

  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto& batch : *loader) {  // each loop is the next epoch
      optimizer.zero_grad();
      torch::nll_loss(model.forward(batch.data), batch.target).backward();
      optimizer.step();
    }
  }
  if (group->rank() == 0) torch::save(net, folder / "net.pt");  // the keys of the plain module
  expect(sampler.epoch() == 1, "each loop is the next epoch");
}

void an_evaluation(const peal::ProcessGroupPtr& group, const mnist::ImageDataset& digits) {
  Net net(/*dropout_rate=*/0.25);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  peal::train::Trainer trainer(net, optimizer, group);

  using peal::train::SamplerOptions, peal::train::data::Remainder;
  const peal::train::DistributedSampler each_once(
      *digits.size(),
      group->rank(),
      group->size(),
      {.order = SamplerOptions::Order::kSequential, .remainder = Remainder::kUneven});
  const auto loader = torch::data::make_data_loader(digits, each_once, 64);

  using Batch = torch::data::Example<>;
  const auto measure = [](NetImpl& model, Batch& batch, peal::train::Metrics& metrics) {
    const auto right = model.forward(batch.data).argmax(1).eq(batch.target).to(torch::kDouble);
    metrics.add("accuracy", right.mean().item<double>(), static_cast<double>(right.size(0)));
  };
  const double accuracy = trainer.evaluate(*loader, measure).at("accuracy");

  net->eval();
  const torch::Tensor predicted = net->forward(digits.images()).argmax(1);
  const auto expected = predicted.eq(digits.labels()).to(torch::kDouble).mean().item<double>();
  expect(std::abs(accuracy - expected) < 1e-9, "the accuracy is that of all digits");
}

void gradients_in_fewer_bytes(const peal::ProcessGroupPtr& group,
                              const torch::data::Example<>& batch) {
  using namespace peal::train;
  auto net = make_classifier();

  const auto in_16_bits = std::make_shared<CastHook>(torch::kBFloat16);
  const auto power_sgd = std::make_shared<PowerSgd>(PowerSgdOptions{.start_iteration = 10});
  DistributedDataParallel model(net, group, {.hook = in_16_bits});  // or power_sgd

  torch::nll_loss(model.forward(batch.data), batch.target).backward();
  const torch::Tensor gradient = net->parameters()[0].grad();
  expect(gradient.eq(gradient.to(torch::kBFloat16)).all().item<bool>(), "the mean is in 16 bits");
  expect(power_sgd->iteration() == 0, "no pass used the other hook");
}

void a_position(const peal::ProcessGroupPtr& group, const mnist::ImageDataset& digits) {
  peal::train::DistributedSampler sampler(*digits.size(), group->rank(), group->size());
  const auto loader =
      torch::data::make_data_loader(digits, sampler, torch::data::DataLoaderOptions(16).workers(2));
  std::size_t trained = 0, saved = 0;
  const auto train = [&](const torch::data::Example<>& batch) {
    trained += static_cast<std::size_t>(batch.data.size(0) * group->size());
  };
  const auto time_to_save = [&] { return trained >= 64; };
  const auto save = [&](std::size_t, std::size_t position) { saved = position; };
  const auto done = [&] { return saved > 0; };

  for (auto& batch : peal::train::counted(*loader, sampler)) {
    train(batch);
    if (time_to_save()) save(sampler.epoch(), sampler.position());  // includes this batch
    if (done()) break;                                              // the loader stays usable
  }
  expect(saved == trained, "the position counts the batches of all ranks");
}

void files_of_tensors(const fs::path& folder, const fs::path& from_python) {
  using namespace peal::train;
  auto net = make_classifier();

  save_tensors(folder / "net.safetensors", module_tensors(*net));  // for Python's load_file
  load_module(*net, StoredTensors(folder / "net.safetensors"));    // of Python's save_file
  load_module(*net, StoredTensors(folder));                        // several files, shards of torch

  const torch::Tensor weight = net->parameters()[0].detach();
  const torch::Tensor before = weight.clone();
  weight.zero_();
  load_module(*net, load_tensors(folder));
  expect(weight.equal(before), "the file has the values of the module");
  if (from_python.empty()) return;
  load_module(*net, load_pickled_tensors(from_python));  // of torch.save(net.state_dict())
}

void a_divided_state(const peal::ProcessGroupPtr& group, const torch::data::Example<>& batch) {
  auto net = make_classifier();
  peal::train::DistributedDataParallel model(net, group);
  peal::train::ZeroRedundancyOptimizer<torch::optim::AdamW> optimizer(group, net, {1e-3});
  optimizer.zero_grad();
  torch::nll_loss(model.forward(batch.data), batch.target).backward();
  optimizer.step();
  expect(optimizer.gather_state().parameters.contains("1.weight"), "the whole state is by name");
}

void sixteen_bits(const peal::ProcessGroupPtr& group,
                  const std::vector<torch::data::Example<>>& batches) {
  auto net = make_classifier();
  peal::train::DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  peal::train::GradScaler scaler;  // f16 only; bf16 needs none
  for (const auto& batch : batches) {
    optimizer.zero_grad();
    torch::Tensor loss;
    {
      const peal::train::Autocast autocast(torch::kHalf);  // or kBFloat16
      loss = torch::nll_loss(model.forward(batch.data).to(torch::kFloat32), batch.target);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);  // only to clip
    peal::train::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);  // skips after an overflow
    scaler.update();
  }
  expect(net->parameters()[0].isfinite().all().item<bool>(), "the parameters are finite");
}

struct NormalizedImpl : torch::nn::Module {
  NormalizedImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(norm(conv(x))); }

  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 8, 3)};
  peal::train::SyncBatchNorm norm{8};  // options and keys of BatchNorm1d, 2d and 3d
};
TORCH_MODULE(Normalized);

void normalization_over_ranks(const peal::ProcessGroupPtr& group, const torch::Tensor& pictures) {
  Normalized net;
  peal::train::DistributedDataParallel model(net, group);
  peal::train::convert_sync_batch_norm(*net, group);  // before: a plain batch normalization
  model.forward(pictures).sum().backward();
  torch::Tensor mean = net->conv(pictures).detach().mean({0, 2, 3});
  peal::train::all_reduce(*group, mean, {.op = peal::ReduceOp::kAvg});
  expect(net->norm->running_mean.allclose(0.1 * mean, 1e-3, 1e-4), "the mean is over all ranks");
}

void one_device(const torch::Tensor& rows, const std::vector<int>& gpus, int local_rank) {
  torch::nn::Linear net(64, 9);
  const std::vector<torch::Device> devices = peal::train::choose_devices(gpus);
  const torch::Device device = peal::train::device_of(local_rank, devices);
  net->to(device);  // before the optimizer and DistributedDataParallel are made
  const torch::Tensor output = net->forward(rows.to(device));
  expect(output.device().type() == device.type(), "the output is on the device of the rank");
}

void several_devices(const torch::Tensor& rows) {
  torch::nn::Sequential net(torch::nn::Linear(64, 32), torch::nn::ReLU(), torch::nn::Linear(32, 9));
  peal::train::DataParallel model(net, {.devices = {torch::kCPU, torch::kCPU}});
  expect(model.forward(rows).allclose(net->forward(rows), 1e-4, 1e-5), "the outputs are the same");
}

void operations_on_tensors(const peal::ProcessGroupPtr& group) {
  const int n = group->size();
  const peal::Rank left = (group->rank() + n - 1) % n, right = (group->rank() + 1) % n;
  torch::Tensor loss = torch::full({1}, group->rank(), torch::kFloat32);
  torch::Tensor tensor = torch::zeros({2, 3});

  peal::train::all_reduce(*group, loss, {.op = peal::ReduceOp::kAvg});
  const peal::WorkPtr work = peal::train::irecv(*group, tensor.t(), left);  // keeps the tensor
  peal::train::send(*group, torch::full({3, 2}, group->rank(), torch::kFloat32), right);
  work->wait();
  expect(loss.item<float>() == static_cast<float>(n - 1) / 2, "all ranks have the mean");
  expect(tensor.eq(left).all().item<bool>(), "the tensor is that of the rank to the left");
}

/// A new folder of this rank; the destructor removes it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "peal-training-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void run(const fs::path& from_python) {
  start_ranks();
  const peal::ProcessGroupPtr group = peal::init_process_group();
  const Folder folder;
  torch::manual_seed(1);
  const mnist::ImageDataset digits(mnist::draw_digits(256, 1));
  const torch::data::Example<> batch(digits.images(), digits.labels());
  a_loop_of_your_own(group, digits, folder.path());
  an_evaluation(group, digits);
  gradients_in_fewer_bytes(group, batch);
  a_position(group, digits);
  files_of_tensors(folder.path(), from_python);
  a_divided_state(group, batch);
  sixteen_bits(group, {batch, batch});
  normalization_over_ranks(
      group, digits.images().chunk(group->size())[static_cast<std::size_t>(group->rank())]);
  one_device(torch::randn({6, 64}), /*gpus=*/{}, /*local_rank=*/0);
  several_devices(torch::randn({6, 64}));
  operations_on_tensors(group);
  if (group->rank() == 0) std::cout << "all checks have passed\n";
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Runs the code of the guide to training on all ranks of the job");
  fs::path from_python;
  app.add_option("state_dict",
                 from_python,
                 "A file of Python's torch.save(net.state_dict()) for the network of "
                 "make_classifier");
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  run(from_python);
  return 0;
} catch (const c10::Error& error) {  // what() would be a page of stack frames
  std::cerr << "training: " << error.what_without_backtrace() << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "training: " << error.what() << "\n";
  return 1;
}
