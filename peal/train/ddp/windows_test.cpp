// What a gradient becomes: by which average, over which passes, with and without an earlier
// gradient.
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::on_ranks;
using testing::TwoPaths;
using torch::Tensor;

constexpr auto kF64 = torch::kDouble;

/// One weight, whose gradient in a pass is the mean of the inputs.
struct Scale : torch::nn::Module {
  Scale() { weight = register_parameter("weight", torch::ones({1}, kF64)); }
  Tensor forward(const Tensor& x) { return x * weight; }
  double gradient() const { return weight.grad().item<double>(); }
  Tensor weight;
};

using Model = DistributedDataParallel<Scale>;

/// A batch of `rows` samples with the value `value`.
void pass(Model& model, double value, std::int64_t rows = 1) {
  model.forward(torch::full({rows}, value, kF64)).mean().backward();
}

/// The gradient of each rank after body(model, rank).
std::vector<double> gradients(int ranks,
                              const DataParallelOptions& options,
                              const std::function<void(Model&, Rank)>& body) {
  return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    Model model(std::make_shared<Scale>(), group, options);
    body(model, group->rank());
    return model->gradient();
  });
}

TEST(WindowsTest, ASumIsTheSumOverRanks) {
  EXPECT_THAT(
      gradients(
          3, {.average = Average::kSum}, [](Model& model, Rank rank) { pass(model, rank + 1); }),
      Each(6));
}

TEST(WindowsTest, AnAverageBySamplesIsTheMeanOverAllSamples) {
  for (const int ranks : {1, 2, 3, 4}) {
    double sum = 0, samples = 0;
    for (Rank rank = 0; rank < ranks; ++rank) {
      sum += (rank + 1) * (2 * rank + 1);
      samples += 2 * rank + 1;
    }
    for (const int passes : {1, 2}) {  // the first one does not know the usual number of samples
      const auto all =
          gradients(ranks, {.average = Average::kBySamples}, [&](Model& model, Rank rank) {
            for (int i = 0; i < passes; ++i) {
              model->zero_grad();
              pass(model, rank + 1, 2 * rank + 1);
            }
          });
      EXPECT_THAT(all, Each(::testing::DoubleNear(sum / samples, 1e-15))) << ranks;
    }
  }
}

TEST(WindowsTest, TheProgramMayGiveTheNumberOfSamples) {
  EXPECT_THAT(gradients(2,
                        {.average = Average::kBySamples},
                        [](Model& model, Rank rank) {
                          const Tensor loss = model.forward(torch::full({1}, rank, kF64)).mean();
                          model.set_samples(rank == 0 ? 1 : 3);
                          loss.backward();
                        }),
              Each(0.75));
}

/// As Scale, but forward has no argument that is a tensor.
struct ScaleOfRank : Scale {
  Tensor forward(Rank rank) { return weight * rank; }
};

TEST(WindowsTest, AnUnknownNumberOfSamplesIsAnErrorUntilTheProgramGivesIt) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel<ScaleOfRank> model(
        std::make_shared<ScaleOfRank>(), group, {.average = Average::kBySamples});
    const auto pass = [&] { model.forward(group->rank()).sum().backward(); };
    const std::string error = testing::thrown_text(pass);
    model.set_samples(group->rank() == 0 ? 1 : 3);
    pass();
    return std::pair(error, model->gradient());
  });
  EXPECT_THAT(results, Each(::testing::Pair(::testing::HasSubstr("set_samples()"), 0.75)));
}

TEST(WindowsTest, AnEmptyBatchCountsAsNothingThoughItsLossIsNotANumber) {
  EXPECT_THAT(gradients(2,
                        {.average = Average::kBySamples},
                        [](Model& model, Rank rank) { pass(model, 5, rank); }),
              Each(5));
}

TEST(WindowsTest, PassesWithoutCommunicationCountWithTheirSamples) {
  for (const int ranks : {1, 2}) {
    // Rank 0 has 1 sample of value 1 and 3 of value 2; rank 1 has 5 of value 4 in one pass.
    const double expected = ranks == 1 ? 7.0 / 4 : 27.0 / 9;
    EXPECT_THAT(gradients(ranks,
                          {.average = Average::kBySamples},
                          [](Model& model, Rank rank) {
                            for (int round = 0; round < 3; ++round) {
                              model->zero_grad();
                              if (rank == 1) {
                                pass(model, 4, 5);
                                continue;
                              }
                              {
                                const auto no_sync = model.no_sync();
                                pass(model, 1, 1);
                              }
                              pass(model, 2, 3);
                            }
                          }),
                Each(::testing::DoubleNear(expected, 1e-15)));
  }
}

TEST(WindowsTest, GradientsThatWereDroppedDoNotCountInTheNextWindow) {
  EXPECT_THAT(gradients(2,
                        {.average = Average::kBySamples},
                        [](Model& model, Rank rank) {
                          {
                            const auto no_sync = model.no_sync();
                            pass(model, 100, 100);
                          }
                          model->zero_grad();
                          pass(model, rank, 1);
                        }),
              Each(0.5));
}

TEST(WindowsTest, GradientsSetToZeroStillCountWithTheirSamples) {
  EXPECT_THAT(gradients(2,
                        {.average = Average::kBySamples},
                        [](Model& model, Rank) {
                          {
                            const auto no_sync = model.no_sync();
                            pass(model, 100, 3);
                          }
                          model->zero_grad(/*set_to_none=*/false);
                          pass(model, 8, 1);
                        }),
              Each(2));
}

TEST(WindowsTest, AnEarlierGradientIsAddedOnceForEveryAverage) {
  struct Case {
    Average average;
    double once;
  };
  for (const auto& [average, once] :
       {Case{Average::kMean, 1.5}, Case{Average::kSum, 3}, Case{Average::kBySamples, 1.5}}) {
    EXPECT_THAT(gradients(2,
                          {.average = average},
                          [](Model& model, Rank rank) {
                            for (int i = 0; i < 3; ++i) pass(model, rank + 1);
                          }),
                Each(3 * once));
  }
}

TEST(WindowsTest, TheDefaultZeroGradKeepsTheMemoryOfGradients) {
  const auto places = on_ranks(2, [](const ProcessGroupPtr& group) {
    Model model(std::make_shared<Scale>(), group);
    std::vector<const void*> seen;
    for (int step = 0; step < 4; ++step) {
      model->zero_grad();
      pass(model, 1);
      seen.push_back(model->weight.grad().data_ptr());
    }
    return std::set(seen.begin(), seen.end()).size();
  });
  EXPECT_THAT(places, Each(1u));
}

// ---- parameters that are not reached ------------------------------------------------------------

/// The bias gradients of `second`, after a pass that reaches it on the ranks for which `reaches` is
/// true, and in which it had the gradient `earlier` before.
std::vector<std::optional<double>> bias_gradients(const std::function<bool(Rank)>& reaches,
                                                  std::optional<double> earlier,
                                                  const DataParallelOptions& options = {}) {
  return on_ranks(3, [&](const ProcessGroupPtr& group) -> std::optional<double> {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, options);
    const Tensor bias = net->second->bias;
    for (int pass = 0; pass < 2; ++pass) {
      net->zero_grad();
      if (earlier) bias.mutable_grad() = torch::full({3}, *earlier);
      const auto path = reaches(group->rank()) ? TwoPaths::Path::kBoth : TwoPaths::Path::kFirst;
      model.forward(torch::ones({1, 3}), path).sum().backward();
    }
    if (!bias.grad().defined()) return std::nullopt;
    return bias.grad()[0].item<double>();
  });
}

TEST(WindowsTest, AParameterThatNoRankReachesKeepsItsGradient) {
  const auto no_rank = [](Rank) { return false; };
  for (const auto average : {Average::kMean, Average::kSum, Average::kBySamples}) {
    EXPECT_THAT(bias_gradients(no_rank, std::nullopt, {.average = average}), Each(std::nullopt));
    EXPECT_THAT(bias_gradients(no_rank, 0.1, {.average = average}), Each(std::optional(0.1f)));
  }
}

TEST(WindowsTest, AParameterThatOneRankReachesGetsTheAverageOnAll) {
  const auto one_rank = [](Rank rank) { return rank == 1; };
  for (const auto& [average, once] : {std::pair(Average::kMean, 1.0 / 3),
                                      std::pair(Average::kSum, 1.0),
                                      std::pair(Average::kBySamples, 1.0 / 3)}) {
    for (const std::optional<double> earlier : {std::optional<double>(), std::optional(2.0)}) {
      for (const auto& gradient : bias_gradients(one_rank, earlier, {.average = average})) {
        ASSERT_TRUE(gradient.has_value());
        EXPECT_NEAR(*gradient, once + earlier.value_or(0), 1e-6);
      }
    }
  }
}

TEST(WindowsTest, AParameterReachedOnlyInAPassWithoutCommunicationCounts) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, {.unused = UnusedParameters::kAreErrors});
    const Tensor x = torch::ones({1, 3});
    {
      const auto no_sync = model.no_sync();
      model.forward(x, TwoPaths::Path::kBoth).sum().backward();
    }
    model.forward(x, TwoPaths::Path::kFirst).sum().backward();
    return net->second->bias.grad().equal(torch::ones({3}));
  });
  EXPECT_THAT(results, Each(true));
}

// ---- a static graph -----------------------------------------------------------------------------

TEST(WindowsTest, AStaticGraphAveragesWithAndWithoutNoSync) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(
        net, group, {.bucket_cap = 1_B, .first_bucket_cap = 1_B, .graph = Graph::kStatic});
    std::vector<double> seen;
    for (int step = 0; step < 4; ++step) {
      net->zero_grad();
      const Tensor x = torch::full({1, 3}, group->rank() + 1.0);
      {
        const auto no_sync = model.no_sync();
        model.forward(x, TwoPaths::Path::kFirst).sum().backward();
      }
      model.forward(x, TwoPaths::Path::kFirst).sum().backward();
      seen.push_back(net->first->weight.grad()[0][0].item<double>());
      seen.push_back(net->second->weight.grad().defined() ? 1 : 0);
    }
    return seen;
  });
  EXPECT_THAT(results, Each(ElementsAre(3, 0, 3, 0, 3, 0, 3, 0)));
}

TEST(WindowsTest, AStaticGraphThatReachesAnotherParameterIsAnErrorWithItsName) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group, {.graph = Graph::kStatic});
    const Tensor x = torch::ones({1, 3});
    model.forward(x, TwoPaths::Path::kFirst).sum().backward();
    return testing::thrown_text([&] { model.forward(x, TwoPaths::Path::kBoth).sum().backward(); });
  });
  EXPECT_THAT(errors, Each(::testing::HasSubstr("reached second.")));
}

TEST(WindowsTest, AnEvaluationBeforeBackwardDoesNotChangeTheNumberOfSamples) {
  EXPECT_THAT(gradients(2,
                        {.average = Average::kBySamples},
                        [](Model& model, Rank rank) {
                          const Tensor loss =
                              model.forward(torch::full({rank * 2 + 1}, rank, kF64)).mean();
                          {
                            const torch::NoGradGuard no_grad;
                            model.forward(torch::ones({100}, kF64));
                          }
                          loss.backward();
                        }),
              Each(0.75));
}

// ---- buffers ------------------------------------------------------------------------------------

struct Counted : torch::nn::Module {
  Counted() {
    weight = register_parameter("weight", torch::ones({1}));
    mean = register_buffer("mean", torch::zeros({2}));
    count = register_buffer("count", torch::zeros({1}, torch::kInt64));
  }
  Tensor forward(const Tensor& x) {
    mean.fill_(x[0].item<double>());
    count.add_(x[0].to(torch::kInt64));
    return x * weight;
  }
  Tensor weight, mean, count;
};

TEST(WindowsTest, BuffersAreAveragedAndIntegersAreThoseOfRankZero) {
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(
        std::make_shared<Counted>(), group, {.buffers = BufferSync::kAverage});
    model.forward(torch::full({1}, group->rank() + 1.0)).sum().backward();
    return std::pair(model->mean[1].item<double>(), model->count.item<std::int64_t>());
  });
  EXPECT_THAT(results, Each(::testing::Pair(2, 1)));
}

TEST(WindowsTest, AveragedBuffersSurviveAPassInWhichNoRankHasData) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(
        std::make_shared<Counted>(), group, {.buffers = BufferSync::kAverage});
    model->mean.fill_(group->rank() + 1.0);
    model.sync_buffers();
    const double before = model->mean[0].item<double>();
    model.pass_without_data();
    return std::pair(before, model->mean[0].item<double>());
  });
  EXPECT_THAT(results, Each(::testing::Pair(1.5, 1.5)));
}

TEST(WindowsTest, BuffersChangedByForwardAloneAreMadeEqualOnRequest) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<Counted>(), group);
    model.forward(torch::full({1}, group->rank() + 5.0));
    model.sync_buffers();
    return model->count.item<std::int64_t>();
  });
  EXPECT_THAT(results, Each(5));
}

TEST(WindowsTest, IgnoredTensorsAreNeitherSentNorCompared) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Counted>();
    net->register_parameter("own", torch::full({1 + group->rank()}, group->rank() + 1.0));
    DistributedDataParallel model(net, group, {.ignored = {"own", "mean"}});
    (model.forward(torch::full({1}, group->rank() + 1.0)).sum() + net->parameters().back().sum())
        .backward();
    return std::vector<double>{net->weight.grad().item<double>(),
                               net->parameters().back().grad()[0].item<double>(),
                               net->mean[0].item<double>()};
  });
  EXPECT_THAT(results, ElementsAre(ElementsAre(1.5, 1, 1), ElementsAre(1.5, 1, 2)));
}

// ---- the order of buckets -----------------------------------------------------------------------

/// Uses its layers in the order of their registration or in the reverse order.
struct AnyOrder : torch::nn::Module {
  AnyOrder() {
    for (int i = 0; i < 4; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(3, 3)));
    }
  }
  Tensor forward(Tensor x, bool reversed) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[reversed ? layers.size() - 1 - i : i](x);
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

TEST(WindowsTest, GradientsStayAveragedWhenTheOrderOfArrivalChanges) {
  const auto nets = testing::replicas<AnyOrder>(3);
  const auto results = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DistributedDataParallel model(net, group, {.bucket_cap = 40_B, .first_bucket_cap = 40_B});
    std::vector<Tensor> seen;
    for (int step = 0; step < 12; ++step) {
      if (step % 3 != 0) net->zero_grad();
      const bool reversed = step / 4 % 2 == 0;
      model.forward(torch::full({1, 3}, group->rank() + step * 0.5), reversed).sum().backward();
      seen.push_back(testing::flat_gradients(*net));
    }
    return seen;
  });
  Tensor sum;
  for (int step = 0; step < 12; ++step) {
    const auto& alone = nets[2];
    if (step % 3 != 0) alone->zero_grad();
    for (Rank rank = 0; rank < 2; ++rank) {
      (alone->forward(torch::full({1, 3}, rank + step * 0.5), step / 4 % 2 == 0).sum() / 2)
          .backward();
    }
    const auto index = static_cast<std::size_t>(step);
    EXPECT_TRUE(results[0][index].equal(results[1][index])) << step;
    EXPECT_TRUE(results[0][index].allclose(testing::flat_gradients(*alone), 1e-5, 1e-6)) << step;
  }
}

TEST(WindowsTest, TwoModelsShareALoopAndABackwardPass) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    Model generator(std::make_shared<Scale>(), group);
    Model critic(std::make_shared<Scale>(), group);
    std::vector<double> seen;
    for (int step = 0; step < 3; ++step) {
      const Tensor x = torch::full({1}, group->rank() + 1.0, kF64);
      critic->zero_grad();
      critic.forward(generator.forward(x).detach()).sum().backward();
      seen.push_back(critic->gradient());
      generator->zero_grad();
      critic->zero_grad();
      critic.forward(generator.forward(x)).sum().backward();
      seen.push_back(generator->gradient());
      seen.push_back(critic->gradient());
    }
    return seen;
  });
  EXPECT_THAT(results, Each(Each(1.5)));
}

}  // namespace
}  // namespace peal::train
