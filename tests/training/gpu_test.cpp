// Models on a GPU in one process: groups of one rank, and checkpoints.
#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/async_checkpointer.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/grad_scaler.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/testing/gpus.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::kGpu;
using testing::on_ranks;
using testing::SmallNet;
using testing::TemporaryFolder;
using testing::thrown_text;
using torch::Tensor;

class GpuTest : public testing::GpuTest {};

using NetPtr = std::shared_ptr<SmallNet>;
using ZeroAdamW = ZeroRedundancyOptimizer<torch::optim::AdamW>;

std::vector<NetPtr> nets_on(const torch::Device& device, int count) {
  std::vector<NetPtr> nets = testing::replicas<SmallNet>(count);
  for (const NetPtr& net : nets) net->to(device, torch::kFloat64);
  return nets;
}

/// The gradients of step `number`, on the device of the net.
void set_gradients(const SmallNet& net, int number) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(number));
  for (const Tensor& parameter : net.parameters()) {
    parameter.mutable_grad() =
        torch::randn(parameter.sizes(), random, torch::kFloat64).to(parameter.device());
  }
}

void train(torch::optim::Optimizer& optimizer, const SmallNet& net, int from, int to) {
  for (int i = from; i < to; ++i) {
    set_gradients(net, i);
    optimizer.step();
  }
}

bool are_equal(const SmallNet& one, const SmallNet& other) {
  return flat_parameters(one).cpu().equal(flat_parameters(other).cpu());
}

bool are_close(const SmallNet& one, const SmallNet& other) {
  return flat_parameters(one).cpu().allclose(flat_parameters(other).cpu(), 1e-12, 1e-12);
}

TEST_F(GpuTest, AGradScalerIsUnsupportedAndChangesNothing) {
  const NetPtr net = nets_on(kGpu, 1)[0];
  set_gradients(*net, 1);
  const Tensor before = net->conv->weight.grad().clone();
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  GradScaler scaler;
  EXPECT_EQ(scaler.scale(torch::tensor(2.0, kGpu)).item<double>(), 2 * 65536);
  EXPECT_THAT(thrown_text([&] { scaler.step(optimizer); }),
              AllOf(HasSubstr("unsupported: GradScaler"), HasSubstr("cuda:0"), HasSubstr("CPU")));
  EXPECT_TRUE(net->conv->weight.grad().equal(before));
}

// ---- a group of one rank ------------------------------------------------------------------------

TEST_F(GpuTest, DistributedDataParallelOfOneRankIsTheModule) {
  const std::vector<NetPtr> nets = nets_on(kGpu, 2);
  on_ranks(1, [&](const ProcessGroupPtr& group) {
    DistributedDataParallel model(nets[0], group);
    torch::optim::SGD optimizer(nets[0]->parameters(), 0.01), plain(nets[1]->parameters(), 0.01);
    torch::manual_seed(1);
    for (int step = 0; step < 5; ++step) {
      const Tensor x = torch::rand({6, 1, 8, 8}, torch::kFloat64).to(kGpu);
      optimizer.zero_grad();
      model.forward(x).square().sum().backward();
      optimizer.step();
      plain.zero_grad();
      nets[1]->forward(x).square().sum().backward();
      plain.step();
      EXPECT_TRUE(are_close(*nets[0], *nets[1]));
    }
    return 0;
  });
}

TEST_F(GpuTest, ZeroOfOneRankIsTheOptimizerAndGathersItsState) {
  const std::vector<NetPtr> nets = nets_on(kGpu, 3);
  on_ranks(1, [&](const ProcessGroupPtr& group) {
    torch::optim::AdamW plain(nets[0]->parameters(), {0.1});
    train(plain, *nets[0], 0, 6);
    ZeroAdamW first(group, nets[1], {0.1});
    train(first, *nets[1], 0, 3);
    load_module(*nets[2], module_tensors(*nets[1]));
    ZeroAdamW second(group, nets[2], {0.1});
    second.load_state(first.gather_state());
    train(second, *nets[2], 3, 6);
    EXPECT_TRUE(are_close(*nets[2], *nets[0]));
    return 0;
  });
}

TEST_F(GpuTest, SyncBatchNormOfOneRankIsABatchNorm) {
  on_ranks(1, [&](const ProcessGroupPtr& group) {
    SyncBatchNorm norm(torch::nn::BatchNormOptions(3), group);
    torch::nn::BatchNorm1d plain(3);
    norm->to(kGpu, torch::kFloat64);
    plain->to(kGpu, torch::kFloat64);
    const Tensor x = torch::rand({5, 3}, torch::kFloat64).to(kGpu);
    EXPECT_TRUE(norm->forward(x).allclose(plain->forward(x), 1e-12, 1e-12));
    EXPECT_TRUE(norm->running_var.allclose(plain->running_var, 1e-12, 1e-12));
    return 0;
  });
}

// ---- checkpoints --------------------------------------------------------------------------------

Checkpoint checkpoint_of(const SmallNet& net, const torch::optim::Optimizer& optimizer) {
  Checkpoint now{.step = 3};
  now.models["model"] = module_tensors(net);
  now.optimizers["optimizer"] = read_optimizer_state(optimizer, net.named_parameters());
  return now;
}

/// Three steps by Adam, a checkpoint, and three further steps by a new run, on other devices.
void expect_same_after_reload(const torch::Device& from, const torch::Device& to) {
  SCOPED_TRACE(c10::str("from ", from, " to ", to));
  const TemporaryFolder folder;
  const torch::optim::AdamOptions options = torch::optim::AdamOptions(0.1).amsgrad(true);
  const NetPtr net = nets_on(from, 1)[0], again = nets_on(to, 1)[0];
  torch::optim::Adam optimizer(net->parameters(), options);
  train(optimizer, *net, 0, 3);
  save_checkpoint(folder.path(), checkpoint_of(*net, optimizer));
  train(optimizer, *net, 3, 6);

  const CheckpointReader saved(folder.path() / "step-00000003");
  torch::optim::Adam restored(again->parameters(), options);
  saved.load_module("model", *again);
  load_optimizer_state(restored, again->named_parameters(), saved.optimizer("optimizer"));
  for (const auto& [name, fields] :
       read_optimizer_state(restored, again->named_parameters()).parameters) {
    EXPECT_TRUE(fields.at("step").is_cpu());
    EXPECT_EQ(fields.at("step").item<int>(), 3);
    EXPECT_EQ(fields.at("exp_avg").device(), to);
    EXPECT_EQ(fields.at("max_exp_avg_sq").device(), to);
  }
  EXPECT_EQ(again->conv->weight.device(), to);
  train(restored, *again, 3, 6);
  EXPECT_TRUE(from == to ? are_equal(*net, *again) : are_close(*net, *again));
}

TEST_F(GpuTest, ACheckpointContinuesThereAndOnTheCpu) {
  expect_same_after_reload(kGpu, kGpu);
  expect_same_after_reload(kGpu, torch::kCPU);
  expect_same_after_reload(torch::kCPU, kGpu);
}

TEST_F(GpuTest, AnAsyncCheckpointHasTheTensorsOfTheCall) {
  const TemporaryFolder folder;
  const NetPtr net = nets_on(kGpu, 1)[0];
  torch::optim::Adam optimizer(net->parameters());
  train(optimizer, *net, 0, 3);
  const Tensor before = flat_parameters(*net).cpu();
  AsyncCheckpointer checkpointer(folder.path());
  checkpointer.save(checkpoint_of(*net, optimizer));
  train(optimizer, *net, 3, 6);
  checkpointer.wait();
  const NetPtr again = nets_on(kGpu, 1)[0];
  CheckpointReader(folder.path() / "step-00000003").load_module("model", *again);
  EXPECT_TRUE(flat_parameters(*again).cpu().equal(before));
}

}  // namespace
}  // namespace peal::train
