#include "peal/train/ddp/distributed_data_parallel.h"

#include <stdlib.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;
using testing::thrown_text;
using testing::TwoPaths;
using torch::Tensor;

// ---- at construction ----------------------------------------------------------------------------

TEST(DistributedDataParallelTest, AllRanksGetTheParametersAndBuffersOfRankZero) {
  struct WithBuffer : torch::nn::Module {
    explicit WithBuffer(double value) {
      weight = register_parameter("weight", torch::full({2, 3}, value).t());
      count = register_buffer("count", torch::full({2}, static_cast<std::int64_t>(value)));
    }
    Tensor forward(const Tensor& x) { return x.matmul(weight); }
    Tensor weight, count;
  };
  const auto sums = on_ranks(3, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<WithBuffer>(7 + group->rank());
    const DistributedDataParallel model(net, group);
    return std::pair(net->weight.sum().item<double>(), net->count.sum().item<std::int64_t>());
  });
  for (const auto& [weight, count] : sums) {
    EXPECT_EQ(weight, 7 * 6);
    EXPECT_EQ(count, 7 * 2);
  }
}

TEST(DistributedDataParallelTest, DifferentModulesAreAMismatchThatNamesBothSidesOnEveryRank) {
  const auto errors = on_ranks(3, [](const ProcessGroupPtr& group) {
    const std::int64_t width = group->rank() == 2 ? 5 : 4;
    const torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Linear(4, width));
    return thrown_text([&] { DistributedDataParallel(net, group); });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error,
                AllOf(HasSubstr("mismatch"),
                      HasSubstr("1.weight (Float, shape [4, 4]"),
                      HasSubstr("1.weight (Float, shape [5, 4]"),
                      HasSubstr("rank 2")));
  }
}

TEST(DistributedDataParallelTest, AnExtraParameterOnOneRankIsAMismatch) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Sequential net(torch::nn::Linear(3, 4));
    if (group->rank() == 1) net->push_back(torch::nn::Linear(4, 4));
    return thrown_text([&] { DistributedDataParallel(net, group); });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("nothing on rank 0"), HasSubstr("1.weight")));
  }
}

TEST(DistributedDataParallelTest, CheckpointsHaveTheKeysOfThePlainModule) {
  const auto keys = on_ranks(2, [](const ProcessGroupPtr& group) {
    const DistributedDataParallel model(std::make_shared<SmallNet>(), group);
    std::stringstream file;
    torch::save(model.module(), file);
    SmallNet plain;
    torch::serialize::InputArchive archive;
    archive.load_from(file);
    plain.load(archive);
    return flat_parameters(plain).equal(flat_parameters(*model));
  });
  EXPECT_THAT(keys, ::testing::Each(true));
}

TEST(DistributedDataParallelTest, AGroupOfOneDoesNotChangeTheModule) {
  const auto gradients = on_ranks(1, [](const ProcessGroupPtr& group) {
    const auto net = replicas<SmallNet>(1)[0];
    DistributedDataParallel model(net, group);
    model.forward(torch::ones({2, 1, 8, 8})).sum().backward();
    return flat_gradients(*net);
  });
  const auto net = replicas<SmallNet>(1)[0];
  net->forward(torch::ones({2, 1, 8, 8})).sum().backward();
  EXPECT_TRUE(gradients[0].equal(flat_gradients(*net)));
}

// ---- backward -----------------------------------------------------------------------------------

TEST(DistributedDataParallelTest, FrozenParametersGetNoGradientAndTheOthersTheAverage) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    net->first->weight.requires_grad_(false);
    DistributedDataParallel model(net, group);
    model.forward(torch::full({1, 3}, group->rank() + 1.0)).sum().backward();
    return std::pair(net->first->weight.grad().defined(), net->second->bias.grad().clone());
  });
  for (const auto& [frozen_has_gradient, bias] : results) {
    EXPECT_FALSE(frozen_has_gradient);
    EXPECT_TRUE(bias.equal(torch::ones({3})));
  }
}

TEST(DistributedDataParallelTest, AParameterUnusedOnOneRankIsAnErrorOnEveryRank) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(
        std::make_shared<TwoPaths>(), group, {.unused = UnusedParameters::kAreErrors});
    const auto path = group->rank() == 0 ? TwoPaths::Path::kBoth : TwoPaths::Path::kFirst;
    const Tensor x = torch::ones({1, 3});
    const std::string error = thrown_text([&] { model.forward(x, path).sum().backward(); });
    model.forward(x).sum().backward();  // the ranks are still in step
    return error;
  });
  EXPECT_THAT(errors[0],
              AllOf(HasSubstr("usage"), HasSubstr("second.weight and 1 more on another rank")));
  EXPECT_THAT(errors[1],
              AllOf(HasSubstr("usage"), HasSubstr("did not reach second.weight and 1 more:")));
}

TEST(DistributedDataParallelTest, UnusedParametersMayContributeNothing) {
  struct Result {
    Tensor first, second;
    bool third_defined;
  };
  const auto results = on_ranks(3, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    net->register_module("third", torch::nn::Linear(2, 2));
    DistributedDataParallel model(net, group, {.unused = UnusedParameters::kContributeNothing});
    const auto path = group->rank() == 1 ? TwoPaths::Path::kBoth : TwoPaths::Path::kFirst;
    Result result;
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      model.forward(torch::ones({1, 3}), path).sum().backward();
      result = {net->first->bias.grad().clone(),
                net->second->bias.grad().clone(),
                net->parameters().back().grad().defined()};
    }
    return result;
  });
  for (const Result& result : results) {
    EXPECT_TRUE(result.first.equal(results[0].first));
    EXPECT_TRUE(result.second.allclose(torch::full({3}, 1.0 / 3)));
    EXPECT_FALSE(result.third_defined);
  }
}

TEST(DistributedDataParallelTest, NoSyncAccumulatesHereAndTheNextPassAveragesTheSums) {
  constexpr int kPasses = 3;
  const auto input = [](Rank rank, int pass) {
    return torch::full({2, 1, 8, 8}, 0.1 * (rank + 1) + 0.05 * pass) +
           torch::arange(64).view({8, 8}) * 0.01;
  };
  const auto nets = replicas<SmallNet>(3);
  const auto gradients = on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& net = nets[static_cast<std::size_t>(group->rank())];
    DistributedDataParallel model(net, group);
    for (int round = 0; round < 2; ++round) {  // the second round begins with gradients in buckets
      net->zero_grad(/*set_to_none=*/round == 0);
      {
        const auto no_sync = model.no_sync();
        for (int pass = 0; pass + 1 < kPasses; ++pass) {
          model.forward(input(group->rank(), pass)).select(1, 0).sum().backward();
        }
      }
      model.forward(input(group->rank(), kPasses - 1)).select(1, 0).sum().backward();
    }
    return flat_gradients(*net);
  });
  const auto& alone = nets[2];
  for (Rank rank = 0; rank < 2; ++rank) {
    for (int pass = 0; pass < kPasses; ++pass) {
      (alone->forward(input(rank, pass)).select(1, 0).sum() / 2).backward();
    }
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
  EXPECT_TRUE(gradients[0].allclose(flat_gradients(*alone), 1e-4, 1e-5));
}

/// While this object lives, the ranks of this process use the transport `name`.
class Transport {
 public:
  explicit Transport(const char* name) { ::setenv("PEAL_TRANSPORT", name, 1); }
  ~Transport() { ::unsetenv("PEAL_TRANSPORT"); }
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
};

TEST(DistributedDataParallelTest, GradientsOf16BitsAreAveragedEvenIfTheirSumOverflows) {
  struct Weight : torch::nn::Module {
    Weight() { weight = register_parameter("weight", torch::ones({1000}, torch::kHalf)); }
    Tensor forward(const Tensor& x) { return weight * x; }
    Tensor weight;
  };
  for (const char* const name : {"shm", "tcp"}) {
    const Transport transport(name);
    const auto gradients = on_ranks(3, [](const ProcessGroupPtr& group) {
      const auto net = std::make_shared<Weight>();
      DistributedDataParallel model(net, group);
      model.forward(torch::ones({1000}, torch::kHalf))
          .backward(torch::full({1000}, 40000, torch::kHalf));
      return flat_gradients(*net);
    });
    for (const Tensor& gradient : gradients) {
      EXPECT_TRUE(gradient.eq(40000).all().item<bool>()) << name << gradient.max();
    }
  }
}

TEST(DistributedDataParallelTest, TwoBackwardPassesWithoutZeroingAddTwoAverages) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = replicas<TwoPaths>(1)[0];
    DistributedDataParallel model(net, group);
    const Tensor x = torch::full({1, 3}, group->rank() + 1.0);
    model.forward(x).sum().backward();
    const Tensor once = flat_gradients(*net);
    model.forward(x).sum().backward();
    return flat_gradients(*net).allclose(2 * once);
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(DistributedDataParallelTest, GradientsThatAreZeroedKeepTheirMemory) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<SmallNet>();
    DistributedDataParallel model(net, group);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    std::set<const void*> places;
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad(/*set_to_none=*/false);
      model.forward(torch::ones({2, 1, 8, 8})).sum().backward();
      places.insert(net->conv->weight.grad().data_ptr());
    }
    return places.size();
  });
  EXPECT_THAT(results, ::testing::Each(1u));
}

TEST(DistributedDataParallelTest, AllRanksGetTheBatchNormStatisticsOfRankZeroAfterBackward) {
  struct Normed : torch::nn::Module {
    Normed() { register_module("norm", norm); }
    Tensor forward(const Tensor& x) { return norm(x); }
    torch::nn::BatchNorm1d norm{2};
  };
  const auto run = [](BufferSync sync) {
    return on_ranks(2, [sync](const ProcessGroupPtr& group) {
      DistributedDataParallel model(std::make_shared<Normed>(), group, {.buffers = sync});
      const Tensor x = torch::tensor({{1.0f, 2.0f}, {3.0f, 5.0f}}) + group->rank() * 10;
      for (int step = 0; step < 2; ++step) {
        const Tensor twice = model.forward(x).sum() + model.forward(x).sum();
        twice.backward();
      }
      return model->norm->running_mean.clone();
    });
  };
  const auto shared = run(BufferSync::kBroadcast), own = run(BufferSync::kNone);
  EXPECT_TRUE(shared[0].equal(own[0]));
  EXPECT_TRUE(shared[1].equal(own[0]));
  EXPECT_FALSE(own[1].equal(own[0]));
}

TEST(DistributedDataParallelTest, TypesAndStridesMayBeMixed) {
  struct Mixed : torch::nn::Module {
    Mixed() {
      single = register_parameter("single", torch::ones({2, 3}));
      twofold = register_parameter("twofold", torch::ones({2, 3}, torch::kFloat64));
      transposed = register_parameter("transposed", torch::ones({2, 3}).t());
      expanded = register_parameter("gaps", torch::ones({2, 6}).slice(1, 0, 6, 2));
    }
    Tensor forward(const Tensor& x) {
      return (single * x).sum() + (twofold * x).sum() + (transposed.t() * x).sum() +
             (expanded * x).sum();
    }
    Tensor single, twofold, transposed, expanded;
  };
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<Mixed>();
    DistributedDataParallel model(net, group);
    const Tensor x = torch::arange(6).view({2, 3}) * (group->rank() + 1.0);
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      model.forward(x).backward();
    }
    const Tensor expected = torch::arange(6).view({2, 3}) * 1.5f;
    return net->single.grad().equal(expected) && net->transposed.grad().t().equal(expected) &&
           net->twofold.grad().equal(expected.to(torch::kFloat64)) &&
           net->expanded.grad().equal(expected) &&
           net->transposed.grad().strides() == net->transposed.strides();
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(DistributedDataParallelTest, AParameterUnderTwoNamesIsAveragedOnce) {
  struct Tied : torch::nn::Module {
    Tied() {
      weight = register_parameter("weight", torch::ones({2}));
      register_parameter("same", weight);
    }
    Tensor forward(const Tensor& x) { return (weight * x).sum(); }
    Tensor weight;
  };
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<Tied>(), group);
    model.forward(torch::full({2}, 4.0 * group->rank())).backward();
    return model->weight.grad().equal(torch::full({2}, 2.0));
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

/// Passes values on, but no gradient back.
struct Blocked : torch::autograd::Function<Blocked> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    return {Tensor()};
  }
};

TEST(DistributedDataParallelTest, ARankWithoutAGradientGetsTheAverageToo) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const torch::nn::Linear net(torch::nn::LinearOptions(2, 1).bias(false));
    const DistributedDataParallel model(net, group);
    const Tensor weight = group->rank() == 0 ? net->weight * 1 : Blocked::apply(net->weight);
    (weight * torch::full({1, 2}, 4.0)).sum().backward();
    return net->weight.grad().equal(torch::full({1, 2}, 2.0));
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

}  // namespace
}  // namespace peal::train
