// What replicas share with the thread that calls DataParallel: statistics, modes, threads, random
// numbers.
#include <ATen/autocast_mode.h>

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/guarded.h"
#include "peal/train/replicas/testing/passes.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::expect_close;
using testing::flat_gradients;
using testing::loss_of;
using testing::make_batch;
using testing::make_net;
using testing::on_cpus;
using torch::Tensor;

TEST(DataParallelTest, BatchNormKeepsTheStatisticsOfReplicaZero) {
  torch::nn::BatchNorm1d net(3);
  torch::nn::BatchNorm1d plain(3);
  net->to(torch::kFloat64);
  plain->to(torch::kFloat64);
  DataParallel model(net, on_cpus(2));
  for (const std::int64_t samples : {8, 6}) {
    const Tensor x = make_batch(samples);
    model.forward(x);
    plain->forward(x.narrow(0, 0, samples / 2));  // the part of replica 0
  }
  expect_close(net->running_mean, plain->running_mean);
  expect_close(net->running_var, plain->running_var);
  EXPECT_EQ(net->num_batches_tracked.item<int>(), 2);
  net->eval();
  plain->eval();
  expect_close(model.forward(make_batch(5)), plain->forward(make_batch(5)));
}

TEST(DataParallelTest, EachModuleOfAReplicaIsInTheModeOfTheModule) {
  torch::nn::Sequential net(torch::nn::Dropout(0.5), torch::nn::Dropout(0.5));
  DataParallel model(net, on_cpus(2));
  const auto zeros = [&] {
    const Tensor output = model.forward(torch::ones({2, 4000}));
    return std::pair((output[0] == 0).to(torch::kFloat).mean().item<float>(),
                     (output[1] == 0).to(torch::kFloat).mean().item<float>());
  };
  for (const auto& [first, second, share] : {std::tuple(true, true, 0.75),
                                             {false, true, 0.5},
                                             {false, false, 0.0},
                                             {true, false, 0.5}}) {
    net->train(first || second);
    net[0]->as<torch::nn::Dropout>()->train(first);
    net[1]->as<torch::nn::Dropout>()->train(second);
    const auto [of_first, of_second] = zeros();
    EXPECT_NEAR(of_first, share, 0.05);
    EXPECT_NEAR(of_second, share, 0.05);
  }
}

/// Reports the state of the thread that computes.
struct Watching : torch::nn::Cloneable<Watching> {
  void reset() override {}
  Tensor forward(const Tensor& x) {
    const auto flag = [&](bool value) { return torch::full({x.size(0), 1}, value ? 1.0 : 0.0); };
    return torch::cat({flag(torch::GradMode::is_enabled()),
                       flag(c10::InferenceMode::is_enabled()),
                       flag(at::autocast::is_autocast_enabled(at::kCPU)),
                       torch::full({x.size(0), 1}, static_cast<double>(at::get_num_threads()))},
                      1);
  }
};

TEST(DataParallelTest, TheModesOfTheCallerHoldInTheReplicas) {
  DataParallel model(std::make_shared<Watching>(), on_cpus(2));
  const auto modes = [&] { return model.forward(make_batch(2)).narrow(1, 0, 3); };
  const auto expected = [](float grad, float inference, float autocast) {
    return torch::tensor({{grad, inference, autocast}, {grad, inference, autocast}});
  };
  EXPECT_TRUE(modes().equal(expected(1, 0, 0)));
  {
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(modes().equal(expected(0, 0, 0)));
  }
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(modes().equal(expected(0, 1, 0)));
  }
  at::autocast::set_autocast_enabled(at::kCPU, true);
  EXPECT_TRUE(modes().equal(expected(1, 0, 1)));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(modes().equal(expected(1, 0, 0)));
}

TEST(DataParallelTest, InferenceAndTrainingMayAlternate) {
  auto net = make_net();
  auto plain = make_net();
  std::optional<DataParallel<torch::nn::SequentialImpl>> model;
  {
    const c10::InferenceMode inference;
    model.emplace(net, on_cpus(2));
    EXPECT_TRUE(model->forward(make_batch(4)).is_inference());
  }
  const Tensor output = model->forward(make_batch(4));
  {
    const c10::InferenceMode inference;
    model->forward(make_batch(4));
  }
  loss_of(output).backward();
  loss_of(plain->forward(make_batch(4))).backward();
  expect_close(flat_gradients(*net), flat_gradients(*plain));
}

TEST(DataParallelTest, AutocastComputesInTheLowerTypeWithGradientsInTheTypeOfTheParameters) {
  const auto autocast_output = [](auto& model) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const Tensor output = model.forward(make_batch(4).to(torch::kFloat32));
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    return output;
  };
  auto net = make_net();
  auto plain = make_net();
  net->to(torch::kFloat32);
  plain->to(torch::kFloat32);
  DataParallel model(net, on_cpus(2));
  const Tensor output = autocast_output(model);
  EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(output.equal(autocast_output(*plain)));
  output.sum().backward();
  EXPECT_EQ(net->parameters()[0].grad().scalar_type(), torch::kFloat32);
}

TEST(DataParallelTest, ReplicasHaveTheirShareOfTheThreadsAndTheCallerKeepsItsNumber) {
  const int before = at::get_num_threads();
  at::set_num_threads(6);
  DataParallel shared(std::make_shared<Watching>(), on_cpus(2));
  EXPECT_TRUE((shared.forward(make_batch(2)).select(1, 3) == 3).all().item<bool>());
  ReplicaOptions four = on_cpus(2);
  four.threads = 4;
  DataParallel chosen(std::make_shared<Watching>(), four);
  EXPECT_TRUE((chosen.forward(make_batch(2)).select(1, 3) == 4).all().item<bool>());
  EXPECT_EQ(at::get_num_threads(), 6);
  EXPECT_EQ(std::async(std::launch::async, [] { return at::get_num_threads(); }).get(), 6)
      << "a later thread";
  at::set_num_threads(before);
}

/// Lets one replica after the other draw, in an order that the test chooses. A replica knows itself
/// by its number of samples.
struct Turns {
  static constexpr std::int64_t kTaken = -1;  // at the front: a replica draws now

  Guarded<std::vector<std::int64_t>> order;

  void wait_for(std::int64_t samples) {
    EXPECT_TRUE(order.wait(
        Deadline::after(testing::kLimit),
        [&](const auto& left) { return left.empty() || left.front() == samples; },
        [](auto& left) {
          if (!left.empty()) left.front() = kTaken;
        }));
  }
  void end() {
    order.update([](auto& left) {
      if (!left.empty()) left.erase(left.begin());
    });
  }
};

struct Drawing : torch::nn::Cloneable<Drawing> {
  explicit Drawing(Turns& turns) : turns_(&turns) { reset(); }
  void reset() override { dropout = register_module("dropout", torch::nn::Dropout(0.5)); }
  Tensor forward(const Tensor& x) {
    turns_->wait_for(x.size(0));
    const Tensor output = dropout(x) + torch::rand_like(x);
    turns_->end();
    return output;
  }
  Turns* turns_;
  torch::nn::Dropout dropout = nullptr;
};

TEST(DataParallelTest, RandomNumbersFollowFromTheSeedAndNotFromTheTimingOfThreads) {
  Turns turns;
  DataParallel model(std::make_shared<Drawing>(turns), on_cpus(3));
  const auto output = [&](std::uint64_t seed, std::vector<std::int64_t> order) {
    turns.order.with([&](auto& left) { left = std::move(order); });
    torch::manual_seed(seed);
    const Tensor drawn = model.forward(torch::ones({3 + 2 + 2, 100}));
    return torch::cat({drawn, torch::rand({1, 100})});
  };
  // Two replicas have two samples each, so only the first of them has its own place in the order.
  const Tensor values = output(1, {3, 2, 2});
  EXPECT_TRUE(output(1, {2, 3, 2}).equal(values));
  EXPECT_TRUE(output(1, {2, 2, 3}).equal(values));
  EXPECT_FALSE(output(2, {3, 2, 2}).equal(values));
  EXPECT_FALSE(values[3].equal(values[5])) << "two replicas have the same numbers";
}

}  // namespace
}  // namespace peal::train
