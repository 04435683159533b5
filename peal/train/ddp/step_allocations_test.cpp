// A step with DistributedDataParallel allocates no more blocks than a step of the plain module.
#include <barrier>
#include <cstddef>
#include <memory>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/ranks.h"

#include "tests/support/allocations.h"

namespace peal::train {
namespace {

using testing::on_ranks;

constexpr int kRanks = 2, kFirst = 40, kSteps = 100;

torch::nn::Sequential make_layers() {
  return torch::nn::Sequential(torch::nn::Linear(300, 300),
                               torch::nn::ReLU(),
                               torch::nn::Linear(300, 300),
                               torch::nn::ReLU(),
                               torch::nn::Linear(300, 10));
}

/// The blocks that all ranks together allocate in kSteps steps of `make(group)`, after the first.
template <class Make>
std::size_t blocks_of_steps(Make&& make) {
  std::barrier all(kRanks);  // not of the group, which would allocate
  std::size_t before = 0, after = 0;
  on_ranks(kRanks, [&](const ProcessGroupPtr& group) {
    auto step = make(group);
    for (int i = 0; i < kFirst; ++i) step();
    all.arrive_and_wait();
    if (group->rank() == 0) before = peal::testing::allocations();
    all.arrive_and_wait();
    for (int i = 0; i < kSteps; ++i) step();
    all.arrive_and_wait();
    if (group->rank() == 0) after = peal::testing::allocations();
    all.arrive_and_wait();
    return 0;
  });
  return after - before;
}

auto step_of(auto model, const torch::nn::Sequential& net) {
  const auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.01);
  return [model, optimizer, input = torch::ones({4, 300})]() mutable {
    optimizer->zero_grad();
    model->forward(input).sum().backward();
    optimizer->step();
  };
}

// LibTorch allocates more for gradients that are dropped than for those that stay in their places.
// So this leaves room for what its interfaces of hooks and callbacks ask for: a list for each
// gradient, and one block for each pass.
TEST(StepAllocationsTest, AStepAllocatesNoMoreThanThatOfThePlainModule) {
  const std::size_t plain = blocks_of_steps([](const ProcessGroupPtr&) {
    const torch::nn::Sequential net = make_layers();
    return step_of(net, net);
  });
  const std::size_t with_peal = blocks_of_steps([](const ProcessGroupPtr& group) {
    const torch::nn::Sequential net = make_layers();
    return step_of(
        std::make_shared<DistributedDataParallel<torch::nn::SequentialImpl>>(net.ptr(), group),
        net);
  });
  EXPECT_LE(with_peal, plain);
}

}  // namespace
}  // namespace peal::train
