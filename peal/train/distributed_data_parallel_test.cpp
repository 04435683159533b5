#include "peal/train/distributed_data_parallel.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/parameters.h"
#include "peal/train/tensors.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using testing::error_of;
using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::replicas;
using testing::SmallNet;
using testing::TwoPaths;

// ---- the same training as one process -----------------------------------------------------------

constexpr int kSteps = 30;
constexpr std::int64_t kGlobalBatch = 24;  // which 2, 3 and 4 ranks divide

struct Batch {
  Tensor images;
  Tensor labels;
};

/// What a run of `kSteps` steps leaves behind.
struct Outcome {
  std::vector<double> losses;  // of the global batch
  Tensor parameters;
};

/// Rank r's part of a batch.
Tensor part(const Tensor& batch, const ProcessGroup& group) {
  return batch.chunk(group.size())[static_cast<std::size_t>(group.rank())];
}

std::vector<Batch> batches() {
  const auto random = at::detail::createCPUGenerator(7);
  std::vector<Batch> all;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor labels = torch::randint(4, {kGlobalBatch}, random, torch::kInt64);
    // A class is a bright quarter of the picture.
    Tensor images = torch::randn({kGlobalBatch, 1, 8, 8}, random);
    for (std::int64_t i = 0; i < kGlobalBatch; ++i) {
      const auto quarter = labels[i].item<std::int64_t>();
      images[i][0].narrow(0, quarter / 2 * 4, 4).narrow(1, quarter % 2 * 4, 4).add_(2);
    }
    all.push_back({images, labels});
  }
  return all;
}

/// Trains; after each backward pass `average` sees to the gradients.
template <class Average>
Outcome train(SmallNet& net,
              const std::vector<Batch>& data,
              ProcessGroup* group,
              Average&& average,
              bool drop_gradients) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  Outcome run;
  for (const Batch& batch : data) {
    optimizer.zero_grad(drop_gradients);
    const Tensor images = group ? part(batch.images, *group) : batch.images;
    const Tensor labels = group ? part(batch.labels, *group) : batch.labels;
    Tensor loss = torch::nll_loss(net.forward(images), labels);
    loss.backward();
    average();
    optimizer.step();
    loss = loss.detach().to(torch::kFloat64);
    if (group) all_reduce(*group, loss, ReduceOp::kAvg);
    run.losses.push_back(loss.item<double>());
  }
  run.parameters = flat_parameters(net);
  return run;
}

Outcome train_alone(const std::vector<Batch>& data) {
  torch::set_num_threads(1);
  return train(
      *replicas<SmallNet>(1)[0], data, nullptr, [] {}, true);
}

void expect_same_training(const std::vector<Outcome>& ranks, const Outcome& alone) {
  EXPECT_LT(alone.losses.back(), 0.5 * alone.losses.front()) << "nothing was learned";
  for (const Outcome& run : ranks) {
    EXPECT_TRUE(run.parameters.equal(ranks[0].parameters)) << "parameters differ between ranks";
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      EXPECT_NEAR(run.losses[step], alone.losses[step], 1e-4 * alone.losses[step])
          << "step " << step << " of " << ranks.size() << " ranks";
    }
    EXPECT_TRUE(run.parameters.allclose(alone.parameters, 1e-3, 1e-5)) << ranks.size();
  }
}

class SameTraining : public ::testing::TestWithParam<int> {};

TEST_P(SameTraining, ByDistributedDataParallel) {
  const std::vector<Batch> data = batches();
  const Outcome alone = train_alone(data);
  const auto nets = replicas<SmallNet>(GetParam());
  for (const bool drop_gradients : {true, false}) {
    for (const Bytes cap : {25_MiB, 600_B}) {  // one bucket, several
      const auto fresh = replicas<SmallNet>(GetParam());
      const auto runs = on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
        const auto& net = fresh[static_cast<std::size_t>(group->rank())];
        DistributedDataParallel model(net, group, {.bucket_cap = cap, .first_bucket_cap = cap});
        return train(
            *net, data, group.get(), [] {}, drop_gradients);
      });
      expect_same_training(runs, alone);
    }
  }
}

TEST_P(SameTraining, ByAveragingGradientsByHand) {
  const std::vector<Batch> data = batches();
  const Outcome alone = train_alone(data);
  const auto nets = replicas<SmallNet>(GetParam());
  const auto runs = on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
    SmallNet& net = *nets[static_cast<std::size_t>(group->rank())];
    return train(
        net, data, group.get(), [&] { average_gradients(*group, net); }, true);
  });
  expect_same_training(runs, alone);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameTraining, ::testing::Values(2, 3, 4), [](const auto& ranks) {
  return std::to_string(ranks.param) + "Ranks";
});

// ---- at construction ----------------------------------------------------------------------------

TEST(DistributedDataParallelTest, RankZerosParametersAndBuffersBecomeEveryones) {
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
    return error_of([&] { DistributedDataParallel(net, group); });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error,
                AllOf(HasSubstr("mismatch"),
                      HasSubstr("1.weight (Float, shape [4, 4]"),
                      HasSubstr("1.weight (Float, shape [5, 4]"),
                      HasSubstr("rank 2")));
  }
}

TEST(DistributedDataParallelTest, AParameterMoreOnOneRankIsAMismatch) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Sequential net(torch::nn::Linear(3, 4));
    if (group->rank() == 1) net->push_back(torch::nn::Linear(4, 4));
    return error_of([&] { DistributedDataParallel(net, group); });
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, AllOf(HasSubstr("nothing on rank 0"), HasSubstr("1.weight")));
  }
}

TEST(DistributedDataParallelTest, CheckpointsHoldThePlainModulesKeys) {
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

TEST(DistributedDataParallelTest, AGroupOfOneLeavesTheModuleAlone) {
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
    model.forward(torch::full({1, 3}, group->rank() + 1.0), true).sum().backward();
    return std::pair(net->first->weight.grad().defined(), net->second->bias.grad().clone());
  });
  for (const auto& [frozen_has_gradient, bias] : results) {
    EXPECT_FALSE(frozen_has_gradient);
    EXPECT_TRUE(bias.equal(torch::ones({3})));
  }
}

TEST(DistributedDataParallelTest, AParameterUnusedOnOneRankIsAnErrorOnEveryRank) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<TwoPaths>(), group);
    const bool with_second = group->rank() == 0;
    const auto step = [&](bool second) {
      model.forward(torch::ones({1, 3}), second).sum().backward();
    };
    const std::string error = error_of([&] { step(with_second); });
    step(true);  // the ranks are still in step
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
    Result result;
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      model.forward(torch::ones({1, 3}), group->rank() == 1).sum().backward();
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

TEST(DistributedDataParallelTest, TwoBackwardPassesWithoutZeroingAddTwoAverages) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = replicas<TwoPaths>(1)[0];
    DistributedDataParallel model(net, group);
    const Tensor x = torch::full({1, 3}, group->rank() + 1.0);
    model.forward(x, true).sum().backward();
    const Tensor once = flat_gradients(*net);
    model.forward(x, true).sum().backward();
    return flat_gradients(*net).allclose(2 * once);
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(DistributedDataParallelTest, GradientsThatAreZeroedStayWhereTheyAre) {
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

TEST(DistributedDataParallelTest, BatchNormsStatisticsAreRankZerosAfterBackward) {
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

// ---- when something goes wrong ------------------------------------------------------------------

TEST(DistributedDataParallelTest, ARankThatDoesNotComeIsAnErrorOfBackward) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const std::chrono::milliseconds timeout(300);
    DistributedDataParallel model(std::make_shared<SmallNet>(), group, {.timeout = timeout});
    if (group->rank() == 1) return std::string();
    return error_of([&] { model.forward(torch::ones({2, 1, 8, 8})).sum().backward(); });
  });
  EXPECT_THAT(errors[0], ::testing::AnyOf(HasSubstr("timeout"), HasSubstr("peer_lost")));
}

/// Passes values on; its backward throws.
struct Faulty : torch::autograd::Function<Faulty> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("a fault in the user's function");
  }
};

TEST(DistributedDataParallelTest, ABackwardPassThatWasLeftHalfwayIsNotContinued) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    // Every parameter has a bucket of its own, so that those of `second` are sent before the fault.
    DistributedDataParallel model(net, group, {.bucket_cap = 1_B, .first_bucket_cap = 1_B});
    const Tensor x = torch::ones({1, 3});
    const std::string first =
        error_of([&] { net->second(Faulty::apply(net->first(x))).sum().backward(); });
    const std::string second = error_of([&] { model.forward(x, true).sum().backward(); });
    return std::pair(first, second);
  });
  for (const auto& [first, second] : errors) {
    EXPECT_THAT(first, HasSubstr("a fault in the user's function"));
    EXPECT_THAT(second, AllOf(HasSubstr("usage"), HasSubstr("no longer in step")));
  }
}

TEST(DistributedDataParallelTest, AFaultBeforeAnythingWasSentDoesNoHarm) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = std::make_shared<TwoPaths>();
    DistributedDataParallel model(net, group);
    const Tensor x = torch::ones({1, 3});
    error_of([&] { net->second(Faulty::apply(net->first(x))).sum().backward(); });
    net->zero_grad();
    model.forward(x, true).sum().backward();
    return net->second->bias.grad().equal(torch::ones({3}));
  });
  EXPECT_THAT(results, ::testing::Each(true));
}

TEST(DistributedDataParallelTest, GradientsThatCannotBeAveragedAreUnsupported) {
  struct Sparse : torch::nn::Module {
    Sparse() { register_module("embedding", embedding); }
    Tensor forward(const Tensor& x) { return embedding(x); }
    torch::nn::Embedding embedding{torch::nn::EmbeddingOptions(4, 2).sparse(true)};
  };
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel sparse(std::make_shared<Sparse>(), group);
    const std::string first = error_of([&] {
      sparse.forward(torch::tensor({1, 2})).sum().backward();
    });
    DistributedDataParallel net(std::make_shared<TwoPaths>(), group);
    const std::string second = error_of([&] {
      net.forward(torch::ones({1, 3}), true).square().sum().backward({}, true, true);
    });
    return std::pair(first, second);
  });
  for (const auto& [first, second] : errors) {
    EXPECT_THAT(first, AllOf(HasSubstr("unsupported"), HasSubstr("sparse(false)")));
    EXPECT_THAT(second, AllOf(HasSubstr("unsupported"), HasSubstr("create_graph")));
  }
}

TEST(DistributedDataParallelTest, NoModuleAndNoGroupAreUsageErrors) {
  EXPECT_THAT(error_of([] { DistributedDataParallel(std::make_shared<SmallNet>(), nullptr); }),
              HasSubstr("usage"));
}

}  // namespace
}  // namespace peal::train
