// Two ranks whose tensors and modules are on a GPU, which they share. Each rank is a process: the
// ranks of one process would share LibTorch's backward thread for the GPU, and wait in it for each
// other.
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/init/init.h"
#include "peal/launch/spawn.h"
#include "peal/train/checkpoint/checkpoint_reader.h"
#include "peal/train/checkpoint/module_tensors.h"
#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/ddp/compression_hooks.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/nn/sync_batch_norm.h"
#include "peal/train/optim/clip_grad_norm.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/testing/gpus.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::IsEmpty;
using testing::kGpu;
using testing::SmallNet;
using testing::TemporaryFolder;
using testing::thrown_text;
using torch::Tensor;

/// What went wrong on a rank; empty: nothing.
class Checks {
 public:
  void holds(bool condition, const std::string& what) {
    if (!condition) text_ += what + "\n";
  }
  void close(const Tensor& one, const Tensor& other, const std::string& what) {
    const bool fits = one.sizes() == other.sizes() && one.cpu().allclose(other.cpu(), 1e-9, 1e-11);
    if (fits) return;
    holds(false, c10::str(what, ": differs by ", (one.cpu() - other.cpu()).abs().max()));
  }
  void has(const std::string& text, const std::string& part) {
    holds(text.find(part) != std::string::npos, "\"" + text + "\" lacks \"" + part + "\"");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

using Body = std::function<void(const ProcessGroupPtr&, Checks&)>;

/// A child looks for the GPU, because a process that has used it cannot start ranks.
bool has_gpu() {
  static const bool has = peal::spawn(1, [](Rank) { return torch::cuda::is_available(); })[0];
  return has;
}

class GpuRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << testing::kNoGpu;
  }

  /// Calls `body` on two ranks. It must not throw, and its checks must hold.
  static void on_two_ranks(const Body& body) {
    EXPECT_THAT(peal::spawn(2,
                            [&](Rank) {
                              torch::set_num_threads(1);
                              Checks checks;
                              const std::string error = thrown_text([&] {
                                InitOptions options;
                                options.timeout = testing::kLimit;
                                body(init_process_group(options), checks);
                              });
                              checks.holds(error == "no error", error);
                              return checks.text();
                            }),
                Each(IsEmpty()));
  }
};

using NetPtr = std::shared_ptr<SmallNet>;
using ZeroAdamW = ZeroRedundancyOptimizer<torch::optim::AdamW>;

std::vector<NetPtr> nets_on(const torch::Device& device, int count) {
  std::vector<NetPtr> nets = testing::replicas<SmallNet>(count);
  for (const NetPtr& net : nets) net->to(device, torch::kFloat64);
  return nets;
}

/// The pictures of a step, of all ranks together.
Tensor pictures(int step, std::int64_t count = 8) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step + 1));
  return torch::randn({count, 1, 8, 8}, random, torch::kFloat64).to(kGpu);
}

/// The mean over pictures of a loss that differs for each.
Tensor loss_of(const Tensor& output) { return output.square().sum(1).mean(); }

/// This rank's half of the rows.
Tensor mine(const ProcessGroupPtr& group, const Tensor& x) { return x.chunk(2)[group->rank()]; }

// ---- operations ---------------------------------------------------------------------------------

TEST_F(GpuRanksTest, OperationsReadAndWriteTensorsThere) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const auto rank = static_cast<double>(group->rank());
    const auto is = [&](const Tensor& tensor, std::vector<double> values, const std::string& what) {
      checks.holds(tensor.is_cuda(), what + ": has moved");
      checks.close(tensor.flatten(), torch::tensor(values, torch::kFloat64), what);
    };
    const auto options = torch::dtype(torch::kFloat64).device(kGpu);
    const Tensor sum = torch::full({3}, rank + 1, options);
    all_reduce(*group, sum);
    is(sum, {3, 3, 3}, "all_reduce");
    const Tensor later = torch::full({2}, rank, options);
    const WorkPtr work = all_reduce_async(*group, later, {.op = ReduceOp::kMax});
    work->wait();
    is(later, {1, 1}, "all_reduce_async");
    const Tensor strided = torch::full({2, 3}, rank, options).t();
    broadcast(*group, strided, 1);
    is(strided, {1, 1, 1, 1, 1, 1}, "broadcast to a transposed tensor");
    const Tensor all = torch::zeros({2, 2}, options);
    all_gather(*group, torch::full({2}, rank, options), all);
    is(all, {0, 0, 1, 1}, "all_gather");
    const Tensor half = torch::zeros({1}, options);
    reduce_scatter(*group, torch::arange(2, options) + rank, half);
    is(half, {1 + 2 * rank}, "reduce_scatter");
    const Tensor message = torch::full({2}, rank, options);
    if (group->rank() == 0) {
      send(*group, message + 5, 1);
    } else {
      recv(*group, message, 0);
      is(message, {5, 5}, "recv");
    }
  });
}

TEST_F(GpuRanksTest, AnOperationWaitsForTheKernelsThatComputeItsInput) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const Tensor large = torch::full({4096, 4096}, 1.0 / 4096, kGpu);
    all_reduce(*group, large);  // loads the kernels
    for (int pass = 0; pass < 3; ++pass) {
      Tensor product = torch::full({4096, 4096}, 1.0 / 4096, kGpu);
      const Tensor factor = product.clone();
      for (int i = 0; i < 20; ++i) product = product.mm(factor);
      all_reduce(*group, product);
      checks.holds((product * 2048 - 1).abs().max().item<double>() < 1e-3, "a sum came too early");
    }
  });
}

TEST_F(GpuRanksTest, GradientsAndParametersAreAveragedAndBroadcastThere) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    const Tensor x = pictures(0);
    loss_of(nets[0]->forward(mine(group, x))).backward();
    average_gradients(*group, *nets[0]);
    loss_of(nets[1]->forward(x)).backward();
    checks.close(flat_gradients(*nets[0]), flat_gradients(*nets[1]), "average_gradients");
    const Tensor before = flat_parameters(*nets[0]);
    if (group->rank() == 1) {
      for (const Tensor& parameter : nets[0]->parameters()) parameter.detach().zero_();
    }
    broadcast_parameters(*group, *nets[0]);
    checks.holds(flat_parameters(*nets[0]).equal(before), "broadcast_parameters");
  });
}

// ---- DistributedDataParallel --------------------------------------------------------------------

/// Trains for some steps, and compares each with one process on the pictures of both ranks.
void compare_training(const ProcessGroupPtr& group,
                      Checks& checks,
                      const DataParallelOptions& options,
                      const std::string& what) {
  const std::vector<NetPtr> nets = nets_on(kGpu, 2);
  DistributedDataParallel model(nets[0], group, options);
  torch::optim::SGD optimizer(nets[0]->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD plain(nets[1]->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 6; ++step) {
    const Tensor x = pictures(step);
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    loss_of(model.forward(mine(group, x))).backward();
    for (const Tensor& parameter : nets[0]->parameters()) {
      checks.holds(parameter.grad().is_cuda(), what + ": a gradient is not on the GPU");
    }
    std::vector<Tensor> of_ranks = {flat_gradients(*nets[0]), flat_gradients(*nets[0])};
    all_gather(*group, of_ranks[group->rank()].clone(), of_ranks);
    checks.holds(of_ranks[0].equal(of_ranks[1]), what + ": the ranks have different gradients");
    optimizer.step();
    plain.zero_grad();
    loss_of(nets[1]->forward(x)).backward();
    plain.step();
    checks.close(flat_parameters(*nets[0]), flat_parameters(*nets[1]), what);
  }
}

TEST_F(GpuRanksTest, TrainingIsThatOfOneProcess) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    compare_training(group, checks, {}, "default");
    compare_training(group, checks, {.average = Average::kBySamples}, "by samples");
    compare_training(
        group, checks, {.bucket_cap = 1_KiB, .first_bucket_cap = 1_B}, "small buckets");
    compare_training(group, checks, {.graph = Graph::kStatic}, "static graph");
    compare_training(group, checks, {.computation = Computation::kCopied}, "copied");
    const c10::impl::VirtualGuardImpl cuda(torch::kCUDA);
    const c10::StreamGuard elsewhere(cuda.getNewStream(kGpu));
    compare_training(group, checks, {}, "another stream");
  });
}

TEST_F(GpuRanksTest, BatchesOfDifferentSizesCountBySamples) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    DistributedDataParallel model(nets[0], group, {.average = Average::kBySamples});
    for (const std::int64_t of_rank_0 : {3, 0}) {  // the loss of an empty batch is NaN
      const Tensor x = pictures(0);
      const auto parts = x.split_with_sizes({of_rank_0, 8 - of_rank_0});
      for (const NetPtr& net : nets) net->zero_grad();
      loss_of(model.forward(parts[static_cast<std::size_t>(group->rank())])).backward();
      loss_of(nets[1]->forward(x)).backward();
      checks.close(flat_gradients(*nets[0]),
                   flat_gradients(*nets[1]),
                   c10::str("gradients, with ", of_rank_0, " samples on rank 0"));
    }
  });
}

TEST_F(GpuRanksTest, BatchesAccumulateWithoutSync) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    DistributedDataParallel model(nets[0], group);
    for (int step = 0; step < 2; ++step) {
      const Tensor first = pictures(2 * step), second = pictures(2 * step + 1);
      model->zero_grad();
      {
        const auto no_sync = model.no_sync();
        loss_of(model.forward(mine(group, first))).backward();
      }
      loss_of(model.forward(mine(group, second))).backward();
      nets[1]->zero_grad();
      loss_of(nets[1]->forward(first)).backward();
      loss_of(nets[1]->forward(second)).backward();
      checks.close(flat_gradients(*nets[0]), flat_gradients(*nets[1]), "gradients");
    }
  });
}

TEST_F(GpuRanksTest, AParameterThatOneRankDoesNotReachCountsAsZero) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const auto net = testing::replicas<testing::TwoPaths>(1)[0];
    net->to(kGpu, torch::kFloat64);
    DistributedDataParallel model(net, group);
    using Path = testing::TwoPaths::Path;
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      const Tensor x = torch::ones({2, 3}, torch::dtype(torch::kFloat64).device(kGpu));
      model.forward(x, group->rank() == 0 ? Path::kBoth : Path::kFirst).sum().backward();
      checks.close(net->second->bias.grad(), torch::ones({3}, torch::kFloat64), "one path");
    }
  });
}

TEST_F(GpuRanksTest, BuffersAreThoseOfTheFirstRank) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
    net->to(kGpu);
    DistributedDataParallel model(net, group);
    model.forward(torch::randn({5, 3}, kGpu) + group->rank()).sum().backward();
    std::vector<Tensor> of_ranks = {torch::empty({4}, kGpu), torch::empty({4}, kGpu)};
    all_gather(*group, net->named_buffers()["1.running_mean"], of_ranks);
    checks.holds(of_ranks[0].equal(of_ranks[1]) && of_ranks[0].ne(0).any().item<bool>(),
                 "the ranks have different statistics");
  });
}

TEST_F(GpuRanksTest, SparseGradientsAreAveraged) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    torch::manual_seed(1);
    torch::nn::Embedding net(torch::nn::EmbeddingOptions(6, 2).sparse(true));
    net->to(kGpu);
    DistributedDataParallel model(net, group);
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      model.forward(torch::tensor({1, 2 + static_cast<int>(group->rank())}, kGpu)).sum().backward();
      const Tensor expected =
          torch::tensor({0.0, 1.0, 0.5, 0.5, 0.0, 0.0}).view({6, 1}).repeat({1, 2});
      checks.holds(net->weight.grad().is_cuda(), "the gradient is not on the GPU");
      checks.close(net->weight.grad().to_dense(), expected, "gradient");
    }
  });
}

TEST_F(GpuRanksTest, AHookAveragesInASmallerType) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    DistributedDataParallel model(
        nets[0], group, {.hook = std::make_shared<CastHook>(torch::kBFloat16)});
    const Tensor x = pictures(0);
    loss_of(model.forward(mine(group, x))).backward();
    loss_of(nets[1]->forward(x)).backward();
    checks.holds(flat_gradients(*nets[0]).allclose(flat_gradients(*nets[1]), 0.05, 0.05),
                 "the gradients differ by more than rounding");
    checks.holds(!flat_gradients(*nets[0]).equal(flat_gradients(*nets[1])), "nothing was rounded");
  });
}

TEST_F(GpuRanksTest, TrainingContinuesAfterAnExceptionInBackwardOnEveryRank) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    DistributedDataParallel model(nets[0], group, {.first_bucket_cap = 1_B});
    const Tensor x = pictures(0);
    const auto hook = nets[0]->conv->weight.register_hook(
        [](const Tensor&) -> Tensor { throw std::runtime_error("no more gradients"); });
    const std::string error =
        thrown_text([&] { loss_of(model.forward(mine(group, x))).backward(); });
    checks.has(error, "no more gradients");
    nets[0]->conv->weight.remove_hook(hook);
    model->zero_grad();
    loss_of(model.forward(mine(group, x))).backward();
    loss_of(nets[1]->forward(x)).backward();
    checks.close(flat_gradients(*nets[0]), flat_gradients(*nets[1]), "gradients");
  });
}

TEST_F(GpuRanksTest, AModuleMayMoveThereBetweenTwoSteps) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(torch::kCPU, 2);
    DistributedDataParallel model(nets[0], group);
    for (const torch::Device& device :
         {torch::Device(torch::kCPU), kGpu, torch::Device(torch::kCPU)}) {
      for (const NetPtr& net : nets) {
        net->zero_grad();
        net->to(device);
      }
      for (int step = 0; step < 2; ++step) {
        const Tensor x = pictures(step).to(device);
        for (const NetPtr& net : nets) net->zero_grad();
        loss_of(model.forward(mine(group, x))).backward();
        loss_of(nets[1]->forward(x)).backward();
        checks.close(flat_gradients(*nets[0]), flat_gradients(*nets[1]), c10::str("on ", device));
      }
    }
  });
}

TEST_F(GpuRanksTest, AModuleOnSeveralDevicesIsUnsupported) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const NetPtr net = nets_on(torch::kCPU, 1)[0];
    net->out->to(kGpu);
    const std::string error = thrown_text([&] { DistributedDataParallel model(net, group); });
    checks.has(error, "unsupported: ");
    checks.has(error, "out.weight on cuda:0");
    group->barrier();  // the ranks are in step
  });
}

TEST_F(GpuRanksTest, ModulesOnDifferentDevicesAreAMismatch) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const NetPtr net = nets_on(group->rank() == 0 ? kGpu : torch::Device(torch::kCPU), 1)[0];
    const std::string error = thrown_text([&] { DistributedDataParallel model(net, group); });
    checks.has(error, "mismatch: ");
    checks.has(error, "conv.weight");
    checks.has(error, "cuda");
  });
}

// ---- optimizers and modules ---------------------------------------------------------------------

TEST_F(GpuRanksTest, ZeroIsTheOptimizerAndGathersItsState) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 3);
    torch::optim::AdamW plain(nets[0]->parameters(), {0.01});
    const auto train = [](torch::optim::Optimizer& optimizer, SmallNet& net, int from, int to) {
      for (int step = from; step < to; ++step) {
        optimizer.zero_grad();
        loss_of(net.forward(pictures(step))).backward();
        optimizer.step();
      }
    };
    train(plain, *nets[0], 0, 6);
    ZeroAdamW first(group, nets[1], {0.01});
    train(first, *nets[1], 0, 3);
    const OptimizerState state = first.gather_state();
    load_module(*nets[2], module_tensors(*nets[1]));
    ZeroAdamW second(group, nets[2], {0.01});
    second.load_state(state);
    train(second, *nets[2], 3, 6);
    checks.holds(flat_parameters(*nets[2]).allclose(flat_parameters(*nets[0]), 1e-6, 1e-8),
                 "parameters");
    checks.holds(nets[2]->conv->weight.is_cuda(), "a parameter is not on the GPU");
  });
}

TEST_F(GpuRanksTest, GradientsAreClippedThere) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    for (const NetPtr& net : nets) loss_of(net->forward(pictures(group->rank()))).backward();
    const double norm = clip_grad_norm_(nets[0]->parameters(), 0.01);
    const double expected = torch::nn::utils::clip_grad_norm_(nets[1]->parameters(), 0.01);
    checks.holds(std::abs(norm - expected) < 1e-9 * expected, c10::str(norm, " for ", expected));
    checks.close(flat_gradients(*nets[0]), flat_gradients(*nets[1]), "gradients");
    checks.holds(nets[0]->conv->weight.grad().is_cuda(), "a gradient has moved");
  });
}

TEST_F(GpuRanksTest, SyncBatchNormIsUnsupported) {
  on_two_ranks([](const ProcessGroupPtr& group, Checks& checks) {
    SyncBatchNorm norm(torch::nn::BatchNormOptions(3), group);
    norm->to(kGpu);
    const std::string error = thrown_text([&] { norm->forward(torch::ones({4, 3}, kGpu)); });
    checks.has(error, "unsupported: SyncBatchNorm");
    checks.has(error, "cuda:0");
    group->barrier();
  });
}

// ---- checkpoints --------------------------------------------------------------------------------

TEST_F(GpuRanksTest, RanksSaveTensorsThatAreThereTogether) {
  const TemporaryFolder folder;
  on_two_ranks([&](const ProcessGroupPtr& group, Checks& checks) {
    const std::vector<NetPtr> nets = nets_on(kGpu, 2);
    Checkpoint now{.step = 3};
    now.models["model"] = module_tensors(*nets[0]);
    now.rank_tensors["own"] = torch::full({2}, group->rank(), kGpu);
    save_checkpoint(*group, folder.path(), now, {.writers = Writers::kAllRanks});
    for (const Tensor& parameter : nets[1]->parameters()) parameter.detach().zero_();
    const auto saved = open_latest_checkpoint(*group, folder.path());
    saved->load_module("model", *nets[1]);
    checks.holds(flat_parameters(*nets[1]).equal(flat_parameters(*nets[0])), "parameters");
    checks.close(saved->rank_tensors(group->rank()).at("own"),
                 torch::full({2}, group->rank()),
                 "a tensor of one rank");
  });
}

}  // namespace
}  // namespace peal::train
