// Modules that change after they were wrapped: loaded, converted, frozen, or with a replaced layer.
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/parameters.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;
using testing::TwoPaths;
using torch::Tensor;

/// A change that a rank makes to its wrapped module.
using ChangeModule = std::function<void(TwoPaths&, Rank)>;

/// A net whose gradients are easy to compute: with the input x, `second.weight` has the gradient x
/// in each row. `first` passes x on.
std::shared_ptr<TwoPaths> identity_net() {
  const auto net = std::make_shared<TwoPaths>();
  const torch::NoGradGuard no_grad;
  net->first->weight.copy_(torch::eye(3));
  net->first->bias.zero_();
  return net;
}

Tensor input(Rank rank, torch::Dtype type = torch::kFloat) {
  return torch::full({1, 3}, rank + 1.0, type);
}

/// Saves the module and loads it again, which gives each parameter new memory.
template <class Module>
void save_and_load(const std::shared_ptr<Module>& module) {
  std::stringstream file;
  torch::save(module, file);
  torch::load(module, file);
}

/// Whether the gradient of the last layer is the mean over two ranks.
bool is_averaged(TwoPaths& net) {
  const Tensor& gradient = net.second->weight.grad();
  return gradient.equal(torch::full({3, 3}, 1.5, gradient.scalar_type()));
}

/// Two ranks train a step, change the module, and train two more. Returns, by rank, whether the
/// last two steps had averaged gradients.
std::vector<bool> averaged_after(const ChangeModule& change,
                                 const DataParallelOptions& options = {}) {
  return on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group, options);
    model.forward(input(group->rank())).sum().backward();
    change(*net, group->rank());
    bool averaged = true;
    for (const bool set_to_none : {true, false}) {
      net->zero_grad(set_to_none);
      const auto type = net->second->weight.scalar_type();
      model.forward(input(group->rank(), type)).sum().backward();
      averaged = averaged && is_averaged(*net) && net->second->weight.grad().scalar_type() == type;
    }
    return averaged;
  });
}

/// The errors of two ranks in the pass after `change`.
std::vector<std::string> errors_after(const ChangeModule& change,
                                      const DataParallelOptions& options = {}) {
  return on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group, options);
    model.forward(input(group->rank())).sum().backward();
    net->zero_grad();
    change(*net, group->rank());
    return thrown_text([&] {
      const auto type = net->first->weight.scalar_type();
      model.forward(input(group->rank(), type)).sum().backward();
    });
  });
}

TEST(ChangedModuleTest, AStaticGraphIsCountedAgainAfterAConversion) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) { net.to(torch::kDouble); },
                             {.graph = Graph::kStatic}),
              Each(true));
}

// ---- new memory for parameters ------------------------------------------------------------------

TEST(ChangedModuleTest, GradientsStayAveragedAfterTheModuleIsLoaded) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, group);
    std::vector<bool> averaged;
    for (int round = 0; round < 3; ++round) {
      net->zero_grad();
      model.forward(input(group->rank())).sum().backward();
      averaged.push_back(net->weight.grad().equal(torch::full({1, 3}, 1.5)));
      std::stringstream file;
      torch::save(net, file);
      torch::load(net, file);
    }
    return averaged;
  });
  EXPECT_THAT(results, Each(Each(true)));
}

TEST(ChangedModuleTest, GradientsStayAveragedAfterAPartOfTheModuleIsLoaded) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) { save_and_load(net.first.ptr()); }),
              Each(true));
}

TEST(ChangedModuleTest, GradientsStayAveragedAfterAConversionAndBack) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) {
                net.to(torch::kDouble);
                net.to(torch::kFloat);
              }),
              Each(true));
}

TEST(ChangedModuleTest, GradientsStayAveragedAfterSetAndSetData) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) {
                const torch::NoGradGuard no_grad;
                net.second->weight.set_(torch::zeros({3, 3}));
                net.second->bias.set_data(torch::zeros({3}));
              }),
              Each(true));
}

TEST(ChangedModuleTest, GradientsStayAveragedAfterOneRankLoadsTheSameValues) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank rank) {
                if (rank == 1) save_and_load(net.second.ptr());
              }),
              Each(true));
}

// LibTorch rejects backward through a weight that was loaded after forward. A single layer does not
// need its weight in backward.
TEST(ChangedModuleTest, AGraphBuiltBeforeTheLoadIsAveragedToo) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, group);
    const Tensor loss = model.forward(input(group->rank())).sum();
    save_and_load(net.ptr());
    loss.backward();
    return net->weight.grad().equal(torch::full({1, 3}, 1.5));
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ChangedModuleTest, GraphsFromBeforeAndAfterALoadMayShareABackwardPass) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(torch::nn::LinearOptions(3, 1).bias(false));
    net->register_parameter("last", torch::zeros({1}));
    DistributedDataParallel model(net, group);
    // Backward runs the graph that was built first as the last one. Only then the bucket is sent.
    const Tensor last = net->named_parameters()["last"].sum();
    const Tensor before = model.forward(input(group->rank())).sum();
    save_and_load(net.ptr());
    const Tensor after = model.forward(input(group->rank())).sum();
    (last + (before + after)).backward();
    return net->weight.grad().equal(torch::full({1, 3}, 3.0));
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ChangedModuleTest, AGradientThatArrivesAfterItsBucketWasSentIsAnErrorWithItsName) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(torch::nn::LinearOptions(3, 1).bias(false));
    DistributedDataParallel model(net, group);
    const Tensor before = model.forward(input(group->rank())).sum();
    save_and_load(net.ptr());
    return thrown_text([&] { (before + model.forward(input(group->rank())).sum()).backward(); });
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("usage"), HasSubstr("weight again"))));
}

TEST(ChangedModuleTest, ALoadWhileGradientsAccumulateKeepsTheSums) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group);
    {
      const auto no_sync = model.no_sync();
      model.forward(input(group->rank())).sum().backward();
    }
    save_and_load(net->second.ptr());
    model.forward(input(group->rank())).sum().backward();
    return net->second->weight.grad().equal(torch::full({3, 3}, 3.0));
  });
  EXPECT_THAT(results, Each(true));
}

// ---- another layout -----------------------------------------------------------------------------

TEST(ChangedModuleTest, AConvertedModuleHasAveragedGradientsOfItsNewType) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) { net.to(torch::kDouble); }), Each(true));
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) { net.to(torch::kDouble); },
                             {.bucket_cap = 1_B,
                              .first_bucket_cap = 1_B,
                              .unused = UnusedParameters::kContributeNothing}),
              Each(true));
}

TEST(ChangedModuleTest, AConvertedModuleLosesNoPrecisionInItsFirstPass) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, group);
    net->to(torch::kDouble);
    const double tiny = 1e-12;
    model.forward(torch::full({1, 3}, 1 + tiny * group->rank(), torch::kDouble)).sum().backward();
    return (net->weight.grad() - 1).abs().max().item<double>() > tiny / 4 &&
           net->weight.grad().scalar_type() == torch::kDouble;
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ChangedModuleTest, GradientsThatWereNotZeroedAreStillAddedAfterAConversion) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group);
    model.forward(input(group->rank())).sum().backward();
    net->to(torch::kDouble);
    if (group->rank() == 1) {  // its gradients are in other memory than those of rank 0
      for (const Tensor& parameter : net->parameters()) {
        parameter.mutable_grad() = parameter.grad().clone();
      }
    }
    model.forward(input(group->rank(), torch::kDouble)).sum().backward();
    return net->second->weight.grad().equal(torch::full({3, 3}, 3.0, torch::kDouble));
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ChangedModuleTest, ConvertedBuffersAreBroadcastInTheirNewType) {
  struct Normed : torch::nn::Module {
    Normed() { register_module("norm", norm); }
    Tensor forward(const Tensor& x) { return norm(x); }
    torch::nn::BatchNorm1d norm{1};
  };
  const auto means = on_ranks(2, [](const ProcessGroupPtr& group) {
    DistributedDataParallel model(std::make_shared<Normed>(), group);
    model->to(torch::kDouble);
    const Tensor x = torch::tensor({{1.0}, {3.0}}, torch::kDouble) + group->rank() * 10;
    model.forward(x).sum().backward();
    return model->norm->running_mean.item<double>();
  });
  EXPECT_EQ(means[1], means[0]);
}

TEST(ChangedModuleTest, LayersMayBeFrozenAndUnfrozenOnEveryRank) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    for (Tensor& parameter : net->first->parameters()) parameter.requires_grad_(false);
    DistributedDataParallel model(net, group);
    std::vector<bool> right;
    for (const bool second_is_frozen : {false, true, false}) {
      for (Tensor& parameter : net->second->parameters()) {
        parameter.requires_grad_(!second_is_frozen);
      }
      for (Tensor& parameter : net->first->parameters()) parameter.requires_grad_(second_is_frozen);
      net->zero_grad();
      model.forward(input(group->rank())).sum().backward();
      if (second_is_frozen) {
        // d(sum) / d(first.weight[i][j]) = x[j] * (sum of column i of second.weight)
        const Tensor column_sums = net->second->weight.detach().sum(0).unsqueeze(1);
        right.push_back(net->first->weight.grad().allclose(column_sums * 1.5));
      } else {
        right.push_back(is_averaged(*net));
      }
    }
    return right;
  });
  EXPECT_THAT(results, Each(Each(true)));
}

TEST(ChangedModuleTest, AReplacedLayerIsAveragedIfItIsTheSameOnEveryRank) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) {
                net.second = net.replace_module("second", torch::nn::Linear(3, 3));
                const torch::NoGradGuard no_grad;
                net.second->weight.fill_(0.5);
                net.second->bias.zero_();
              }),
              Each(true));
}

TEST(ChangedModuleTest, AReplacedLayerIsNoticedIfAllOtherLayersAreFrozen) {
  EXPECT_THAT(averaged_after([](TwoPaths& net, Rank) {
                for (Tensor& parameter : net.first->parameters()) parameter.requires_grad_(false);
                net.second = net.replace_module("second", torch::nn::Linear(3, 3));
                const torch::NoGradGuard no_grad;
                net.second->weight.fill_(0.5);
                net.second->bias.zero_();
              }),
              Each(true));
}

// ---- ranks that differ --------------------------------------------------------------------------

TEST(ChangedModuleTest, OtherValuesOnOneRankAreAMismatchUntilTheyAreBroadcast) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group);
    if (group->rank() == 0) {
      net->second->weight.set_data(torch::full({3, 3}, 7.0));
    }
    std::vector<std::string> errors;
    for (int pass = 0; pass < 2; ++pass) {
      net->zero_grad();
      errors.push_back(thrown_text([&] { model.forward(input(group->rank())).sum().backward(); }));
    }
    broadcast_parameters(*group, *net);
    net->zero_grad();
    model.forward(input(group->rank())).sum().backward();
    const bool right = is_averaged(*net) && net->second->weight.equal(torch::full({3, 3}, 7.0));
    return std::pair(errors, right);
  });
  for (const auto& [errors, right] : results) {
    EXPECT_THAT(errors,
                Each(AllOf(HasSubstr("mismatch"),
                           HasSubstr("second.weight"),
                           HasSubstr("on rank 0"),
                           HasSubstr("on rank 1"),
                           HasSubstr("broadcast_parameters"))));
    EXPECT_TRUE(right);
  }
}

TEST(ChangedModuleTest, AConversionOnOneRankIsAMismatchOnEveryRank) {
  for (const Rank converted : {0, 1}) {
    EXPECT_THAT(errors_after([&](TwoPaths& net, Rank rank) {
                  if (rank == converted) net.to(torch::kDouble);
                }),
                Each(AllOf(HasSubstr("mismatch"),
                           HasSubstr("first.weight (Float"),
                           HasSubstr("first.weight (Double"))));
  }
}

TEST(ChangedModuleTest, ALayerFrozenOnOneRankIsAMismatchOnEveryRank) {
  EXPECT_THAT(errors_after([](TwoPaths& net, Rank rank) {
                if (rank == 1) net.second->weight.requires_grad_(false);
              }),
              Each(AllOf(HasSubstr("mismatch"), HasSubstr("second.weight"), HasSubstr("frozen"))));
}

TEST(ChangedModuleTest, AChangeThatIsUndoneAfterAMismatchLeavesGradientsAveraged) {
  const auto results = on_ranks(2, [](const ProcessGroupPtr& group) {
    const auto net = identity_net();
    DistributedDataParallel model(net, group);
    const auto pass = [&] { model.forward(input(group->rank())).sum().backward(); };
    if (group->rank() == 0) net->first->weight.requires_grad_(false);
    const std::string error = thrown_text(pass);
    net->first->weight.requires_grad_(true);
    net->zero_grad();
    pass();
    return error.starts_with("mismatch") && is_averaged(*net);
  });
  EXPECT_THAT(results, Each(true));
}

TEST(ChangedModuleTest, ALayerReplacedOnOneRankIsAMismatchOnEveryRank) {
  for (const auto unused : {UnusedParameters::kAreErrors, UnusedParameters::kContributeNothing}) {
    EXPECT_THAT(
        errors_after(
            [](TwoPaths& net, Rank rank) {
              if (rank == 1) {
                net.second = net.replace_module("second", torch::nn::Linear(3, 3));
              }
            },
            {.unused = unused}),
        Each(AllOf(HasSubstr("mismatch"), HasSubstr("second.weight"), HasSubstr("replaced"))));
  }
}

TEST(ChangedModuleTest, AReplacedLayerWithItsOwnValuesOnEachRankIsAMismatch) {
  EXPECT_THAT(
      errors_after([](TwoPaths& net, Rank rank) {
        net.second = net.replace_module("second", torch::nn::Linear(3, 3));
        const torch::NoGradGuard no_grad;
        net.second->weight.fill_(rank);
      }),
      Each(AllOf(
          HasSubstr("mismatch"), HasSubstr("second.weight"), HasSubstr("broadcast_parameters"))));
}

}  // namespace
}  // namespace peal::train
