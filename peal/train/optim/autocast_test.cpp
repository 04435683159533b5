#include "peal/train/optim/autocast.h"

#include <ATen/autocast_mode.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using torch::kBFloat16;
using torch::kFloat32;
using torch::kHalf;
using torch::Tensor;

/// All autocast settings of this thread. The nesting is read by a change and its inverse.
auto thread_state() {
  const int nesting = at::autocast::increment_nesting() - 1;
  at::autocast::decrement_nesting();
  return std::tuple(at::autocast::is_autocast_enabled(at::kCPU),
                    at::autocast::get_autocast_dtype(at::kCPU),
                    at::autocast::is_autocast_cache_enabled(),
                    nesting);
}

torch::ScalarType type_of_product() {
  return torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type();
}

TEST(AutocastTest, ProductsHaveTheTypeOfTheInnermostGuard) {
  const auto before = thread_state();
  {
    const Autocast outer(kBFloat16);
    EXPECT_EQ(type_of_product(), kBFloat16);
    {
      const Autocast inner(kHalf);
      EXPECT_EQ(type_of_product(), kHalf);
      {
        const Autocast off(std::nullopt);
        EXPECT_EQ(type_of_product(), kFloat32);
      }
      EXPECT_EQ(type_of_product(), kHalf);
    }
    EXPECT_EQ(type_of_product(), kBFloat16);
  }
  EXPECT_EQ(type_of_product(), kFloat32);
  EXPECT_EQ(thread_state(), before);
}

TEST(AutocastTest, AnExceptionRestoresTheStateOfTheThread) {
  const auto before = thread_state();
  try {
    const Autocast outer(kHalf, WeightCache::kOff);
    const Autocast inner(kBFloat16);
    throw std::runtime_error("the loss is not finite");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(thread_state(), before);
  EXPECT_THROW(Autocast autocast(kFloat32), Error);
  EXPECT_EQ(thread_state(), before);
}

/// A weight of 2 x 2, whose sum is the output for an input of ones.
struct Weight {
  Tensor weight = torch::ones({2, 2}).requires_grad_();

  double output() const { return torch::linear(torch::ones({1, 2}), weight).sum().item<double>(); }
  void add(double value) {
    const torch::NoGradGuard no_grad;
    weight.add_(value);
  }
};

TEST(AutocastTest, WeightsThatAStepChangesBetweenTwoGuardsAreUsed) {
  Weight one;
  torch::optim::SGD optimizer({one.weight}, torch::optim::SGDOptions(1));
  for (double expected : {4.0, 0.0, -4.0}) {
    {
      const Autocast autocast(kBFloat16);
      EXPECT_EQ(one.output(), expected) << "the copy of the old weight was used";
      const Autocast nested(kBFloat16);
      EXPECT_EQ(one.output(), expected);
    }
    optimizer.zero_grad();
    one.weight.sum().backward();
    optimizer.step();  // every weight falls by 1
  }
}

TEST(AutocastTest, WeightsThatChangeInAGuardNeedTheCacheOff) {
  Weight one;
  const Autocast autocast(kBFloat16);
  EXPECT_EQ(one.output(), 4);
  one.add(1);
  EXPECT_EQ(one.output(), 4) << "LibTorch's trap is gone: the header can be simpler";
  {
    const Autocast uncached(kBFloat16, WeightCache::kOff);
    EXPECT_EQ(one.output(), 8);
    one.add(1);
    EXPECT_EQ(one.output(), 12);
  }
  EXPECT_EQ(one.output(), 12) << "an outer region used a copy from before";
}

TEST(AutocastTest, ANestedGuardOfAnotherTypeDoesNotUseCopiesOfTheFirst) {
  torch::nn::Linear layer(2, 2);
  const Tensor x = torch::ones({1, 2});
  const Autocast outer(kBFloat16);
  EXPECT_EQ(layer(x).scalar_type(), kBFloat16);
  {
    const Autocast inner(kHalf);
    EXPECT_EQ(layer(x).scalar_type(), kHalf);
  }
  EXPECT_EQ(layer(x).scalar_type(), kBFloat16);
}

TEST(AutocastTest, OtherThreadsAreNotAffected) {
  const Autocast autocast(kBFloat16);
  torch::ScalarType other = kHalf;
  std::thread([&] { other = type_of_product(); }).join();
  EXPECT_EQ(other, kFloat32);
  EXPECT_EQ(type_of_product(), kBFloat16);
}

TEST(AutocastTest, GradientsOfF32ParametersAreF32) {
  torch::nn::Linear layer(2, 2);
  Tensor loss;
  {
    const Autocast autocast(kBFloat16);
    loss = layer(torch::ones({1, 2})).sum();
  }
  EXPECT_EQ(loss.scalar_type(), kBFloat16);
  loss.backward();
  EXPECT_EQ(layer->weight.grad().scalar_type(), kFloat32);
}

}  // namespace
}  // namespace peal::train
