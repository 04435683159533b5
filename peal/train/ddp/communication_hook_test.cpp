#include "peal/train/ddp/communication_hook.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/compression_hooks.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/power_sgd.h"
#include "peal/train/tensors/finishing_work.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using testing::flat_gradients;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;

using MakeHook = std::function<std::shared_ptr<CommunicationHook>()>;

Tensor input(Rank rank, int step) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank * 100 + step));
  return torch::randn({4, 1, 8, 8}, random);
}

/// The gradients of each step on each rank, by a hook.
std::vector<std::vector<Tensor>> gradients_by(const MakeHook& make,
                                              DataParallelOptions options = {},
                                              int steps = 4,
                                              int ranks = 3) {
  const auto nets = replicas<SmallNet>(ranks);
  return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DataParallelOptions mine = options;
    if (make) mine.hook = make();
    DistributedDataParallel model(net, group, mine);
    std::vector<Tensor> seen;
    for (int step = 0; step < steps; ++step) {
      net->zero_grad();
      model.forward(input(group->rank(), step)).square().mean().backward();
      seen.push_back(flat_gradients(*net));
    }
    return seen;
  });
}

void expect_close(const std::vector<std::vector<Tensor>>& ranks,
                  const std::vector<Tensor>& expected,
                  double tolerance) {
  for (const auto& steps : ranks) {
    for (std::size_t step = 0; step < steps.size(); ++step) {
      EXPECT_TRUE(steps[step].equal(ranks[0][step])) << "ranks differ in step " << step;
      const double scale = expected[step].abs().max().item<double>();
      EXPECT_LT((steps[step] - expected[step]).abs().max().item<double>(), tolerance * scale);
    }
  }
}

/// A user's hook: all_reduce, with a note of what it was given.
class Noting final : public CommunicationHook {
 public:
  WorkPtr start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) override {
    last += bucket.is_last ? 1 : 0;
    for (const auto& gradient : bucket.gradients) names.push_back(gradient.name);
    elements += bucket.flat.numel();
    return finish_with(all_reduce_async(group, bucket.flat, {.timeout = timeout}),
                       [flat = bucket.flat, n = group.size()] { flat.div_(n); });
  }
  int last = 0;
  std::vector<std::string> names;
  std::int64_t elements = 0;
};

TEST(CommunicationHookTest, AHookOfTheUserAverages) {
  const auto expected = gradients_by({})[0];
  for (const Bytes cap : {1_B, 1_MiB}) {
    expect_close(gradients_by([] { return std::make_shared<Noting>(); },
                              {.bucket_cap = cap, .first_bucket_cap = cap}),
                 expected,
                 1e-6);
  }
}

TEST(CommunicationHookTest, AHookGetsEachGradientOnce) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto hook = std::make_shared<Noting>();
    DistributedDataParallel model(std::make_shared<SmallNet>(),
                                  group,
                                  {.bucket_cap = 600_B, .first_bucket_cap = 600_B, .hook = hook});
    model.forward(input(0, 0)).sum().backward();
    return *hook;
  });
  for (const Noting& hook : results) {
    EXPECT_EQ(hook.last, 1);
    EXPECT_THAT(
        hook.names,
        ::testing::UnorderedElementsAre(
            "conv.weight", "conv.bias", "hidden.weight", "hidden.bias", "out.weight", "out.bias"));
    // Each gradient is followed by a gap up to a multiple of 16 elements.
    EXPECT_EQ(hook.elements, 48 + 16 + 16 * 36 + 16 + 64 + 16);
  }
}

TEST(CommunicationHookTest, SumsAndWeightsAreRightWithAHook) {
  for (const auto average : {Average::kSum, Average::kBySamples}) {
    const auto expected = gradients_by({}, {.average = average})[0];
    expect_close(gradients_by([] { return std::make_shared<Noting>(); }, {.average = average}),
                 expected,
                 1e-6);
  }
}

TEST(CommunicationHookTest, GradientsSentIn16BitsAreCloseToTheMean) {
  const auto expected = gradients_by({})[0];
  expect_close(
      gradients_by([] { return std::make_shared<CastHook>(torch::kHalf); }), expected, 1e-3);
  expect_close(
      gradients_by([] { return std::make_shared<CastHook>(torch::kBFloat16); }), expected, 1e-2);
  EXPECT_THAT(testing::thrown_text([] { CastHook{torch::kInt}; }), HasSubstr("torch::kHalf"));
}

TEST(CommunicationHookTest, FiniteGradientsSentAsFloat16HaveAFiniteMean) {
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
    DistributedDataParallel model(net, group, {.hook = std::make_shared<CastHook>(torch::kHalf)});
    (model.forward(torch::ones({1, 1})) * 60000).sum().backward();
    return net->weight.grad().item<double>();
  });
  EXPECT_THAT(results, Each(::testing::DoubleNear(60000, 32)));
}

// ---- PowerSGD -----------------------------------------------------------------------------------

TEST(PowerSgdTest, TheFirstPassesSendWholeGradients) {
  const auto expected = gradients_by({})[0];
  expect_close(gradients_by([] {
                 return std::make_shared<PowerSgd>(PowerSgdOptions{.start_iteration = 10});
               }),
               expected,
               1e-6);
}

/// One matrix, whose gradient is the sum over k < terms of u_k v_k^T; the ranks differ.
struct Matrix : torch::nn::Module {
  Matrix() { weight = register_parameter("weight", torch::zeros({24, 20}, torch::kDouble)); }
  Tensor forward(Rank rank, int terms, int step) {
    const auto random =
        at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank + 10 * step + 1));
    const auto f64 = torch::kDouble;
    const auto shared = at::detail::createCPUGenerator(5);
    const Tensor u = torch::randn({24, terms}, shared, f64);
    const Tensor v = torch::randn({20, terms}, random, f64);
    return (weight * u.mm(v.t())).sum();
  }
  Tensor weight;
};

/// By step: the gradient by PowerSGD and the mean.
std::vector<std::pair<Tensor, Tensor>> compressed(const PowerSgdOptions& options,
                                                  int terms,
                                                  int steps,
                                                  bool same_gradient) {
  return on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto hook = std::make_shared<PowerSgd>(options);
    DistributedDataParallel model(std::make_shared<Matrix>(), group, {.hook = hook});
    std::vector<std::pair<Tensor, Tensor>> seen;
    for (int step = 0; step < steps; ++step) {
      const int round = same_gradient ? 0 : step;
      model->zero_grad();
      model.forward(group->rank(), terms, round).backward();
      Matrix exact;
      ((exact.forward(0, terms, round) + exact.forward(1, terms, round)) / 2).backward();
      seen.emplace_back(model->weight.grad().clone(), exact.weight.grad());
    }
    return seen;
  })[0];
}

double distance(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST(PowerSgdTest, AGradientOfLowRankIsExact) {
  for (const auto& [result, mean] :
       compressed({.matrix_rank = 3, .start_iteration = 2}, 3, 6, false)) {
    EXPECT_LT(distance(result, mean), 1e-12);
  }
}

TEST(PowerSgdTest, WithErrorFeedbackTheResultsAddUpToTheMean) {
  for (const auto feedback :
       {PowerSgdOptions::ErrorFeedback::kOn, PowerSgdOptions::ErrorFeedback::kOff}) {
    Tensor sum = torch::zeros({24, 20}, torch::kDouble), exact = sum.clone();
    const auto steps = compressed(
        {.matrix_rank = 1, .start_iteration = 2, .error_feedback = feedback}, 4, 60, true);
    for (const auto& [result, mean] : steps) {
      sum += result;
      exact += mean;
    }
    if (feedback == PowerSgdOptions::ErrorFeedback::kOn) {
      EXPECT_LT(distance(sum, exact), 0.05);
    } else {
      EXPECT_GT(distance(sum, exact), 0.2);
    }
  }
}

TEST(PowerSgdTest, TrainingContinuesFromItsState) {
  const auto run = [](bool interrupted) {
    return on_ranks(2, [&](const ProcessGroupPtr& group) {
      const PowerSgdOptions options{.matrix_rank = 2, .start_iteration = 2};
      const auto net = std::make_shared<Matrix>();
      std::vector<Tensor> seen;
      std::map<std::string, Tensor> state;
      const auto steps = [&](int from, int to) {
        const auto hook = std::make_shared<PowerSgd>(options);
        if (from > 0) hook->load_state(state);
        DistributedDataParallel model(net, group, {.hook = hook});
        for (int step = from; step < to; ++step) {
          net->zero_grad();
          model.forward(group->rank(), 4, step).backward();
          seen.push_back(net->weight.grad().clone());
        }
        for (auto& [name, tensor] : hook->state()) state[name] = tensor.clone();
      };
      if (interrupted) {
        steps(0, 5);
        steps(5, 9);
      } else {
        steps(0, 9);
      }
      return seen;
    })[0];
  };
  const auto whole = run(false), parts = run(true);
  for (std::size_t step = 0; step < whole.size(); ++step) {
    EXPECT_TRUE(whole[step].equal(parts[step])) << step;
  }
}

TEST(PowerSgdTest, SmallGradientsAndBiasesAreSentWhole) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto hook = std::make_shared<PowerSgd>(PowerSgdOptions{.start_iteration = 2});
    DistributedDataParallel model(std::make_shared<SmallNet>(), group, {.hook = hook});
    for (int step = 0; step < 3; ++step) model.forward(input(0, step)).sum().backward();
    std::vector<std::string> names;
    for (const auto& [name, tensor] : hook->state()) names.push_back(name);
    return names;
  });
  EXPECT_THAT(results,
              Each(::testing::UnorderedElementsAre("iteration",
                                                   "hidden.weight.error",
                                                   "hidden.weight.q",
                                                   "out.weight.error",
                                                   "out.weight.q",
                                                   "conv.weight.error",
                                                   "conv.weight.q")));
}

TEST(PowerSgdTest, OptionsAndStatesAreChecked) {
  EXPECT_THAT(testing::thrown_text([] { PowerSgd{PowerSgdOptions{.start_iteration = 1}}; }),
              HasSubstr("at least 2"));
  EXPECT_THAT(testing::thrown_text([] {
                PowerSgd().load_state({{"other", torch::ones(1)}});
              }),
              HasSubstr("\"other\""));
}

}  // namespace
}  // namespace peal::train
