// Faults in DistributedDataParallel: each gives an error that says what to do.
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::SmallNet;
using testing::thrown_text;
using testing::TwoPaths;
using torch::Tensor;

TEST(DistributedDataParallelFaultsTest, BackwardFailsIfARankIsMissing) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const std::chrono::milliseconds timeout(300);
    DistributedDataParallel model(std::make_shared<SmallNet>(), group, {.timeout = timeout});
    if (group->rank() == 1) return std::string();
    return thrown_text([&] { model.forward(torch::ones({2, 1, 8, 8})).sum().backward(); });
  });
  EXPECT_THAT(errors[0], ::testing::AnyOf(HasSubstr("timeout"), HasSubstr("peer_lost")));
}

TEST(DistributedDataParallelFaultsTest, TheTimeoutAlsoLimitsTheConstruction) {
  std::latch gave_up(1);
  const auto errors = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const std::chrono::milliseconds timeout(300);
    if (group->rank() == 1) {
      gave_up.wait();
      return std::string();
    }
    const auto begin = Clock::now();
    const std::string error = thrown_text([&] {
      DistributedDataParallel(std::make_shared<SmallNet>(), group, {.timeout = timeout});
    });
    const bool in_time = Clock::now() - begin < testing::kLimit / 4;  // of the group's timeout
    gave_up.count_down();
    return in_time ? error : "too late: " + error;
  });
  EXPECT_THAT(errors[0], ::testing::StartsWith("timeout"));
}

/// Passes values on; its backward throws.
struct Faulty : torch::autograd::Function<Faulty> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("a fault in the user's function");
  }
};

/// Every parameter has its own bucket, so that the buckets of `second` are sent before the fault.
const DataParallelOptions kBucketOfEach = {.bucket_cap = 1_B, .first_bucket_cap = 1_B};

TEST(DistributedDataParallelFaultsTest, TrainingContinuesIfEveryRankFailedAtTheSamePlace) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, kBucketOfEach);
    const Tensor x = torch::ones({1, 3});
    const std::string first =
        thrown_text([&] { net->second(Faulty::apply(net->first(x))).sum().backward(); });
    net->zero_grad();
    model.forward(x * (group->rank() + 1.0)).sum().backward();
    return std::pair(first, net->second->bias.grad().equal(torch::ones({3})));
  });
  for (const auto& [first, is_right] : errors) {
    EXPECT_THAT(first, HasSubstr("a fault in the user's function"));
    EXPECT_TRUE(is_right);
  }
}

// Without asynchronous progress nothing was sent before the faults, so the ranks are in step.
TEST(DistributedDataParallelFaultsTest, RanksThatFailedAtDifferentPlacesContinueOnlyInStep) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, kBucketOfEach);
    const Tensor x = torch::ones({1, 3});
    // Backward runs the nodes in the reverse order of their creation. So rank 0 fails after both
    // gradients of `second`, rank 1 between them.
    const Tensor y = Faulty::apply(net->first(x));
    const Tensor weight =
        group->rank() == 0 ? net->second->weight * 1 : Faulty::apply(net->second->weight * 1);
    const std::string first =
        thrown_text([&] { torch::addmm(net->second->bias, y, weight).sum().backward(); });
    net->zero_grad();
    const std::string second = thrown_text([&] { model.forward(x).sum().backward(); });
    const Tensor gradient = net->second->bias.grad();  // undefined after an error
    return std::tuple(first,
                      second,
                      group->capabilities().asynchronous_progress,
                      gradient.defined() && gradient.equal(torch::ones({3})));
  });
  for (const auto& [first, second, starts_early, is_right] : errors) {
    EXPECT_THAT(first, HasSubstr("a fault in the user's function"));
    if (starts_early) {
      EXPECT_THAT(second, AllOf(HasSubstr("mismatch"), HasSubstr("no longer in step")));
    } else {
      EXPECT_EQ(second, "no error");
      EXPECT_TRUE(is_right);
    }
  }
}

TEST(DistributedDataParallelFaultsTest, ARankThatFailedAloneDoesNotContinue) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, kBucketOfEach);
    const Tensor x = torch::ones({1, 3});
    if (group->rank() == 0) {
      thrown_text([&] { net->second(Faulty::apply(net->first(x))).sum().backward(); });
    }
    return thrown_text([&] { model.forward(x).sum().backward(); });
  });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("mismatch")));
}

TEST(DistributedDataParallelFaultsTest, TrainingContinuesAfterAFaultBeforeTheFirstSend) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group);
    const Tensor x = torch::ones({1, 3});
    thrown_text([&] { net->second(Faulty::apply(net->first(x))).sum().backward(); });
    net->zero_grad();
    model.forward(x).sum().backward();
    return net->second->bias.grad().equal(torch::ones({3}));
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(DistributedDataParallelFaultsTest, CreateGraphIsUnsupported) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel net(std::make_shared<TwoPaths>(), group);
    return thrown_text([&] {
      net.forward(torch::ones({1, 3})).square().sum().backward({}, true, true);
    });
  });
  EXPECT_THAT(errors, ::testing::Each(AllOf(HasSubstr("unsupported"), HasSubstr("create_graph"))));
}

TEST(DistributedDataParallelFaultsTest, ANullModuleOrGroupIsAUsageError) {
  EXPECT_THAT(thrown_text([] { DistributedDataParallel(std::make_shared<SmallNet>(), nullptr); }),
              HasSubstr("usage"));
}

}  // namespace
}  // namespace peal::train
