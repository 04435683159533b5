#include "peal/train/optim/grad_scaler.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/autocast.h"
#include "peal/train/optim/clip_grad_norm.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;
using torch::Tensor;
using Step = GradScaler::Step;

constexpr float kOverflow = std::numeric_limits<float>::infinity();

/// One parameter of two numbers and its optimizer with learning rate 1.
struct Trained {
  Tensor parameter = torch::zeros({2}).requires_grad_();
  torch::optim::SGD optimizer{{parameter}, torch::optim::SGDOptions(1)};

  /// A backward pass whose unscaled gradient is `gradient`.
  void backward(const GradScaler& scaler, const Tensor& gradient) {
    optimizer.zero_grad();
    scaler.scale((parameter * gradient).sum()).backward();
  }
};

TEST(GradScalerTest, StepsWithTheUnscaledGradient) {
  Trained one;
  GradScaler scaler;
  EXPECT_EQ(scaler.current_scale(), 65536);
  one.backward(scaler, torch::tensor({1e-6f, 3.0f}));
  EXPECT_TRUE(one.parameter.grad().equal(torch::tensor({1e-6f, 3.0f}) * 65536));
  EXPECT_EQ(scaler.step(one.optimizer), Step::kTaken);
  scaler.update();
  EXPECT_TRUE(one.parameter.equal(torch::tensor({-1e-6f, -3.0f})));
}

TEST(GradScalerTest, SkipsOverflowsAndAdaptsTheScale) {
  Trained one;
  GradScaler scaler(nullptr, {.scale = 8, .growth_interval = 2});
  std::vector<double> scales;
  std::vector<Step> steps;
  for (const float gradient :
       {1.f, 1.f, 1.f, kOverflow, 1.f, -kOverflow, std::nanf(""), 1.f, 1.f}) {
    one.backward(scaler, torch::tensor({gradient, 0.f}));
    steps.push_back(scaler.step(one.optimizer));
    scaler.update();
    scales.push_back(scaler.current_scale());
  }
  const auto taken = Step::kTaken, skipped = Step::kSkipped;
  EXPECT_THAT(steps,
              ElementsAre(taken, taken, taken, skipped, taken, skipped, skipped, taken, taken));
  EXPECT_THAT(scales, ElementsAre(8, 16, 16, 8, 8, 4, 2, 2, 4));
  EXPECT_EQ(one.parameter[0].item<float>(), -6) << "a skipped step changed the parameter";
}

TEST(GradScalerTest, AScaleNeverGrowsToInfinity) {
  Trained one;
  GradScaler scaler(nullptr, {.scale = 3e38, .growth_interval = 1});
  one.backward(scaler, torch::tensor({0.f, 0.f}));
  scaler.step(one.optimizer);
  scaler.update();
  EXPECT_TRUE(std::isfinite(scaler.current_scale()));
}

TEST(GradScalerTest, GradientsCanBeClippedAfterUnscaling) {
  Trained one;
  GradScaler scaler;
  one.backward(scaler, torch::tensor({3.f, 4.f}));
  scaler.unscale_(one.optimizer);
  EXPECT_EQ(clip_grad_norm_({one.parameter}, 2.5), 5);
  EXPECT_EQ(scaler.step(one.optimizer), Step::kTaken);
  EXPECT_TRUE(one.parameter.allclose(torch::tensor({-1.5f, -2.f}), 1e-5));
}

TEST(GradScalerTest, AnOverflowOfOneRankSkipsTheStepOfAllRanks) {
  const auto outcomes = on_ranks(3, [](const ProcessGroupPtr& group) {
    Trained one;
    GradScaler scaler(group, {.scale = 4, .growth_interval = 1});
    std::vector<double> outcome;
    for (int step = 0; step < 4; ++step) {
      const bool overflow = step % 2 == 1 && group->rank() == step / 2;
      one.backward(scaler, torch::tensor({overflow ? kOverflow : 1.f, 0.f}));
      if (group->rank() == 2) one.optimizer.zero_grad();  // a rank without gradients takes part
      outcome.push_back(scaler.step(one.optimizer) == Step::kTaken ? 1 : 0);
      scaler.update();
      outcome.push_back(scaler.current_scale());
    }
    return outcome;
  });
  for (const auto& outcome : outcomes) {
    EXPECT_THAT(outcome, ElementsAre(1, 8, 0, 4, 1, 8, 0, 4));
  }
}

TEST(GradScalerTest, EachOptimizerSkipsByItsOwnGradients) {
  Trained good, bad;
  GradScaler scaler(nullptr, {.scale = 4});
  good.backward(scaler, torch::tensor({1.f, 1.f}));
  bad.backward(scaler, torch::tensor({kOverflow, 1.f}));
  EXPECT_EQ(scaler.step(good.optimizer), Step::kTaken);
  EXPECT_EQ(scaler.step(bad.optimizer), Step::kSkipped);
  scaler.update();
  EXPECT_EQ(scaler.current_scale(), 2);
}

TEST(GradScalerTest, GradientsOfAnyTypeStridesAndLayoutAreUnscaledOnce) {
  Tensor wide = torch::zeros({2, 3}, torch::kFloat64).requires_grad_();
  Tensor low = torch::zeros({2}, torch::kBFloat16).requires_grad_();
  Tensor sparse = torch::zeros({3}).requires_grad_();
  wide.mutable_grad() = torch::ones({3, 2}, torch::kFloat64).t() * 4;
  low.mutable_grad() = torch::ones({2}, torch::kBFloat16) * 4;
  sparse.mutable_grad() = torch::sparse_coo_tensor(torch::tensor({0, 2}).unsqueeze(0),
                                                   torch::tensor({4.f, 8.f}),
                                                   {3},
                                                   torch::TensorOptions(),
                                                   /*is_coalesced=*/true);
  torch::optim::SGD optimizer({wide, low, sparse, wide}, torch::optim::SGDOptions(1));
  GradScaler scaler(nullptr, {.scale = 4});
  scaler.unscale_(optimizer);
  EXPECT_TRUE(wide.grad().equal(torch::ones({2, 3}, torch::kFloat64)));
  EXPECT_TRUE(low.grad().equal(torch::ones({2}, torch::kBFloat16)));
  EXPECT_TRUE(sparse.grad().to_dense().equal(torch::tensor({1.f, 0.f, 2.f})));
}

TEST(GradScalerTest, CallsInTheWrongOrderAreErrorsThatSayWhich) {
  Trained one;
  GradScaler scaler;
  EXPECT_THAT(thrown_text([&] { scaler.update(); }),
              HasSubstr("usage: update was called, but no optimizer was unscaled"));
  one.backward(scaler, torch::tensor({1.f, 1.f}));
  scaler.unscale_(one.optimizer);
  EXPECT_THAT(thrown_text([&] { scaler.unscale_(one.optimizer); }),
              HasSubstr("usage: unscale_ was called twice"));
  EXPECT_THAT(thrown_text([&] { scaler.state(); }), HasSubstr("within a step"));
  EXPECT_THAT(thrown_text([&] { scaler.load({}); }), HasSubstr("within a step"));
  scaler.step(one.optimizer);
  EXPECT_THAT(thrown_text([&] { scaler.unscale_(one.optimizer); }),
              HasSubstr("usage: unscale_ was called after step()"));
  EXPECT_THAT(thrown_text([&] { scaler.step(one.optimizer); }),
              HasSubstr("usage: step was called twice"));
  scaler.update();
  EXPECT_EQ(one.parameter[0].item<float>(), -1) << "a rejected call changed the parameter";
  scaler.unscale_(one.optimizer);
}

TEST(GradScalerTest, F16GradientsAndWrongFactorsAreErrors) {
  const Tensor parameter = torch::zeros({2}, torch::kHalf).requires_grad_();
  parameter.mutable_grad() = torch::ones({2}, torch::kHalf);
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(1));
  GradScaler scaler;
  EXPECT_THAT(thrown_text([&] { scaler.step(optimizer); }),
              HasSubstr("unsupported: GradScaler got a gradient of type Half"));
  EXPECT_EQ(scaler.state(), GradScalerState()) << "a rejected call left a trace";
  for (const GradScalerState& wrong : {GradScalerState{.scale = 0},
                                       GradScalerState{.growth_factor = 1},
                                       GradScalerState{.backoff_factor = 1},
                                       GradScalerState{.growth_interval = 0}}) {
    EXPECT_THAT(thrown_text([&] { GradScaler(nullptr, wrong); }), HasSubstr("usage"));
  }
}

TEST(GradScalerTest, ALoadedStateContinuesAsTheSavedScaler) {
  Trained one;
  GradScaler scaler(nullptr, {.scale = 8, .growth_interval = 3});
  const auto take_step = [&](GradScaler& any) {
    one.backward(any, torch::tensor({1.f, 1.f}));
    any.step(one.optimizer);
    any.update();
  };
  take_step(scaler);
  take_step(scaler);
  const GradScalerState saved = scaler.state();
  EXPECT_EQ(saved, (GradScalerState{.scale = 8, .growth_interval = 3, .growth_tracker = 2}));
  GradScaler other;
  other.load(saved);
  take_step(other);
  EXPECT_EQ(other.current_scale(), 16);
  other.update(3.0);
  EXPECT_EQ(other.current_scale(), 3);
  EXPECT_EQ(other.state().growth_tracker, 0);
}

TEST(GradScalerTest, F16TrainingFollowsF32Training) {
  torch::set_num_threads(1);
  const auto nets = testing::replicas<testing::SmallNet>(2);
  const auto random = at::detail::createCPUGenerator(3);
  torch::optim::SGD high(nets[0]->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD low(nets[1]->parameters(), torch::optim::SGDOptions(0.1));
  GradScaler scaler(nullptr, {.scale = 1e9, .growth_interval = 10});
  int skipped = 0;
  for (int step = 0; step < 40; ++step) {
    const Tensor x = torch::randn({8, 1, 8, 8}, random, torch::kFloat32);
    const Tensor y = torch::randint(4, {8}, random, torch::kInt64);
    low.zero_grad();
    Tensor loss;
    {
      const Autocast autocast(torch::kHalf);
      loss = torch::nll_loss(nets[1]->forward(x).to(torch::kFloat32), y);
    }
    scaler.scale(loss).backward();
    EXPECT_EQ(nets[1]->conv->weight.grad().scalar_type(), torch::kFloat32);
    const Step taken = scaler.step(low);
    scaler.update();
    if (taken == Step::kSkipped) {
      skipped += 1;
      continue;
    }
    high.zero_grad();
    torch::nll_loss(nets[0]->forward(x), y).backward();
    high.step();
  }
  EXPECT_GT(skipped, 0) << "the first scale does not overflow";
  EXPECT_LT(skipped, 20) << "the scale does not recover";
  EXPECT_TRUE(
      testing::flat_parameters(*nets[1]).allclose(testing::flat_parameters(*nets[0]), 0.05, 0.01));
}

}  // namespace
}  // namespace peal::train
