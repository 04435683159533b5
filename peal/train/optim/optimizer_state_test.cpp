#include "peal/train/optim/optimizer_state.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::replicas;
using testing::SmallNet;
using ::testing::StartsWith;
using testing::thrown_text;
using testing::TwoPaths;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;

struct Case {
  std::string name;
  std::function<OptimizerPtr(std::vector<torch::Tensor>)> make;
};

template <class Optimizer, class Options>
Case make_case(std::string name, Options options) {
  return {std::move(name), [options](std::vector<torch::Tensor> parameters) -> OptimizerPtr {
            return std::make_unique<Optimizer>(std::move(parameters), options);
          }};
}

std::vector<Case> cases() {
  using namespace torch::optim;
  return {
      make_case<SGD>("PlainSgd", SGDOptions(0.1)),
      make_case<SGD>("SgdWithMomentum",
                     SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01)),
      make_case<Adam>("Adam", AdamOptions(0.01).betas({0.8, 0.95})),
      make_case<Adam>("AmsgradAdam", AdamOptions(0.01).amsgrad(true)),
      make_case<AdamW>("AdamW", AdamWOptions(0.01).weight_decay(0.1)),
      make_case<Adagrad>("Adagrad",
                         AdagradOptions(0.1).lr_decay(0.01).initial_accumulator_value(1)),
      make_case<RMSprop>("RMSprop", RMSpropOptions(0.01)),
      make_case<RMSprop>("CenteredRMSprop", RMSpropOptions(0.01).momentum(0.9).centered(true)),
  };
}

/// Steps that depend only on the first step's number and on the parameters.
void train(SmallNet& net, torch::optim::Optimizer& optimizer, int first, int steps) {
  for (int step = first; step < first + steps; ++step) {
    const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
    optimizer.zero_grad();
    const auto images = torch::randn({6, 1, 8, 8}, random);
    const auto labels = torch::randint(4, {6}, random, torch::kInt64);
    torch::nll_loss(net.forward(images), labels).backward();
    optimizer.step();
  }
}

std::shared_ptr<SmallNet> copy_of(const SmallNet& net) {
  auto copy = std::make_shared<SmallNet>();
  const torch::NoGradGuard no_grad;
  for (auto& item : copy->named_parameters()) {
    item.value().copy_(net.named_parameters()[item.key()]);
  }
  return copy;
}

std::vector<torch::Tensor> reversed(std::vector<torch::Tensor> list) {
  return {list.rbegin(), list.rend()};
}

class EachOptimizer : public ::testing::TestWithParam<Case> {};

TEST_P(EachOptimizer, ContinuesAsIfTrainingHadNotStopped) {
  const auto net = replicas<SmallNet>(1)[0];
  const OptimizerPtr optimizer = GetParam().make(net->parameters());
  train(*net, *optimizer, 0, 5);

  const auto resumed_net = copy_of(*net);
  // Options differ until the state is loaded.
  const OptimizerPtr resumed = GetParam().make(reversed(resumed_net->parameters()));
  resumed->param_groups()[0].options().set_lr(123);
  const OptimizerState state = read_optimizer_state(*optimizer, net->named_parameters());
  load_optimizer_state(*resumed, resumed_net->named_parameters(), state);
  train(*net, *optimizer, 5, 20);
  train(*resumed_net, *resumed, 5, 20);
  EXPECT_TRUE(flat_parameters(*resumed_net).equal(flat_parameters(*net)));
}

TEST_P(EachOptimizer, ASecondLoadChangesNothing) {
  const auto net = replicas<SmallNet>(1)[0];
  const OptimizerPtr optimizer = GetParam().make(net->parameters());
  train(*net, *optimizer, 0, 3);

  const auto other_net = copy_of(*net);
  const OptimizerPtr other = GetParam().make(other_net->parameters());
  train(*other_net, *other, 50, 3);
  const OptimizerState saved = read_optimizer_state(*optimizer, net->named_parameters());
  for (int i = 0; i < 2; ++i) load_optimizer_state(*other, other_net->named_parameters(), saved);
  const OptimizerState loaded = read_optimizer_state(*other, other_net->named_parameters());

  EXPECT_EQ(loaded.algorithm, saved.algorithm);
  ASSERT_EQ(loaded.groups.size(), 1u);
  EXPECT_EQ(loaded.groups[0].options, saved.groups[0].options);
  EXPECT_EQ(loaded.groups[0].parameters, saved.groups[0].parameters);
  ASSERT_EQ(loaded.parameters.size(), saved.parameters.size());
  for (const auto& [name, fields] : saved.parameters) {
    ASSERT_EQ(loaded.parameters.at(name).size(), fields.size());
    for (const auto& [field, value] : fields) {
      const torch::Tensor& copy = loaded.parameters.at(name).at(field);
      EXPECT_TRUE(copy.equal(value) && copy.scalar_type() == value.scalar_type()) << name << field;
      EXPECT_FALSE(copy.is_alias_of(value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers,
                         EachOptimizer,
                         ::testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

struct Adam {
  explicit Adam(std::vector<std::vector<torch::Tensor>> groups) : optimizer(list(groups)) {}

  static std::vector<torch::optim::OptimizerParamGroup> list(
      const std::vector<std::vector<torch::Tensor>>& groups) {
    return {groups.begin(), groups.end()};
  }

  torch::optim::Adam optimizer;
};

TEST(OptimizerState, GroupsMayInterleaveTheParameters) {
  TwoPaths net;
  Adam adam({{net.second->bias, net.first->weight}, {net.first->bias, net.second->weight}});
  adam.optimizer.param_groups()[1].options().set_lr(0.5);
  net.forward(torch::ones({2, 3})).sum().backward();
  adam.optimizer.step();
  const OptimizerState state = read_optimizer_state(adam.optimizer, net.named_parameters());
  EXPECT_THAT(state.groups[0].parameters, ElementsAre("second.bias", "first.weight"));
  EXPECT_THAT(state.groups[1].parameters, ElementsAre("first.bias", "second.weight"));

  TwoPaths other;
  Adam swapped(
      {{other.first->weight, other.second->bias}, {other.second->weight, other.first->bias}});
  load_optimizer_state(swapped.optimizer, other.named_parameters(), state);
  EXPECT_EQ(swapped.optimizer.param_groups()[0].options().get_lr(), 1e-3);
  EXPECT_EQ(swapped.optimizer.param_groups()[1].options().get_lr(), 0.5);
  const OptimizerState loaded = read_optimizer_state(swapped.optimizer, other.named_parameters());
  for (const auto& [name, fields] : state.parameters) {
    EXPECT_TRUE(loaded.parameters.at(name).at("exp_avg").equal(fields.at("exp_avg"))) << name;
  }
}

TEST(OptimizerState, AParameterWithoutAStepHasNoEntry) {
  TwoPaths net;
  Adam adam({net.parameters()});
  net.forward(torch::ones({2, 3}), TwoPaths::Path::kFirst).sum().backward();
  adam.optimizer.step();
  const OptimizerState state = read_optimizer_state(adam.optimizer, net.named_parameters());
  EXPECT_EQ(state.parameters.size(), 2u);
  EXPECT_FALSE(state.parameters.contains("second.weight"));

  net.zero_grad();
  net.forward(torch::ones({2, 3})).sum().backward();
  adam.optimizer.step();
  load_optimizer_state(adam.optimizer, net.named_parameters(), state);
  EXPECT_EQ(adam.optimizer.state().size(), 2u) << "the load replaces all entries";
}

TEST(OptimizerState, FieldsGetTheStridesOfTheParameter) {
  const auto flat = torch::randn({4, 3, 2, 2}).contiguous(torch::MemoryFormat::ChannelsLast);
  const auto parameter = flat.detach().requires_grad_();
  NamedParameters names;
  names.insert("w", parameter);
  torch::optim::Adam adam({parameter});
  OptimizerState state = read_optimizer_state(adam, names);
  const auto average = torch::randn({4, 3, 2, 2});
  state.parameters["w"] = {{"step", torch::scalar_tensor(7, torch::kInt64)},
                           {"exp_avg", average},
                           {"exp_avg_sq", average}};
  load_optimizer_state(adam, names, state);
  const auto& loaded = dynamic_cast<const torch::optim::AdamParamState&>(
      *adam.state().at(parameter.unsafeGetTensorImpl()));
  EXPECT_EQ(loaded.step(), 7);
  EXPECT_EQ(loaded.exp_avg().strides(), parameter.strides());
  EXPECT_TRUE(loaded.exp_avg().equal(average));
  EXPECT_FALSE(loaded.exp_avg().requires_grad());
}

TEST(OptimizerState, ATiedParameterIsKnownByEachOfItsNames) {
  const auto tied = torch::randn({2}).requires_grad_();
  NamedParameters names;
  names.insert("embedding", tied);
  names.insert("head", tied);
  torch::optim::SGD sgd({tied}, torch::optim::SGDOptions(0.1).momentum(0.9));
  tied.sum().backward();
  sgd.step();
  OptimizerState state = read_optimizer_state(sgd, names);
  EXPECT_THAT(state.groups[0].parameters, ElementsAre("embedding"));

  state.groups[0].parameters = {"head"};
  state.parameters["head"] = state.parameters.extract("embedding").mapped();
  sgd.state().clear();
  load_optimizer_state(sgd, names, state);
  EXPECT_THAT(read_optimizer_state(sgd, names)
                  .parameters.at("embedding")
                  .at("momentum_buffer")
                  .sum()
                  .item<double>(),
              2);
}

class MisfittingState : public ::testing::Test {
 protected:
  MisfittingState() {
    net_.forward(torch::ones({2, 3})).sum().backward();
    adam_.optimizer.step();
    state_ = read_optimizer_state(adam_.optimizer, net_.named_parameters());
  }

  /// The error of a load of state_, after which the optimizer must be as before.
  std::string load_error() {
    adam_.optimizer.param_groups()[0].options().set_lr(0.25);
    const torch::Tensor before = average().clone();
    const std::string text = thrown_text(
        [&] { load_optimizer_state(adam_.optimizer, net_.named_parameters(), state_); });
    EXPECT_EQ(adam_.optimizer.param_groups()[0].options().get_lr(), 0.25);
    EXPECT_TRUE(average().equal(before));
    return text;
  }

  torch::Tensor average() {
    const auto found = adam_.optimizer.state().find(net_.first->weight.unsafeGetTensorImpl());
    return dynamic_cast<torch::optim::AdamParamState&>(*found->second).exp_avg();
  }

  TwoPaths net_;
  Adam adam_{{net_.parameters()}};
  OptimizerState state_;
};

TEST_F(MisfittingState, OfAnotherAlgorithm) {
  state_.algorithm = "SGD";
  state_.groups.emplace_back();
  EXPECT_THAT(
      load_error(),
      AllOf(StartsWith("usage: the saved state does not fit the optimizer:"),
            HasSubstr("\n  the state is of SGD, but the optimizer is Adam"),
            HasSubstr("\n  the state has 2 groups of parameters, but the optimizer has 1")));
}

TEST_F(MisfittingState, WithOtherParametersOrOptions) {
  state_.groups[0].parameters.back() = "third.bias";
  state_.groups[0].options.erase("eps");
  state_.groups[0].options["momentum"] = 1;
  EXPECT_THAT(load_error(),
              AllOf(HasSubstr("\n  group 0: second.bias is missing from the state"),
                    HasSubstr("\n  group 0: third.bias is in the state, but not in the optimizer"),
                    HasSubstr("\n  group 0: option eps is missing"),
                    HasSubstr("\n  group 0: option momentum is unknown")));
}

TEST_F(MisfittingState, WithOtherFields) {
  state_.parameters["first.weight"]["exp_avg"] = torch::zeros({3});
  state_.parameters["first.bias"]["step"] = torch::zeros({1});
  state_.parameters["second.weight"].erase("exp_avg_sq");
  state_.parameters["second.bias"]["momentum"] = torch::zeros({3});
  state_.parameters["third"] = {};
  EXPECT_THAT(
      load_error(),
      AllOf(HasSubstr("\n  first.weight: exp_avg is Float of shape [3] in the state, but the "
                      "parameter is Float of shape [3, 3]"),
            HasSubstr("\n  first.bias: step is Float of shape [1] in the state, but must be Long"),
            HasSubstr("\n  second.weight: exp_avg_sq is missing from the state"),
            HasSubstr("\n  second.bias: the state has fields that the optimizer does not have"),
            HasSubstr("\n  third is not a parameter of the optimizer")));
}

TEST(OptimizerState, AdagradNeedsAnEntryForEachParameter) {
  TwoPaths net;
  torch::optim::Adagrad adagrad(net.parameters());
  OptimizerState state = read_optimizer_state(adagrad, net.named_parameters());
  state.parameters.erase("first.bias");
  EXPECT_THAT(thrown_text([&] { load_optimizer_state(adagrad, net.named_parameters(), state); }),
              HasSubstr("first.bias has no fields in the state"));
}

TEST(OptimizerState, LbfgsIsRefusedWithTheReason) {
  TwoPaths net;
  torch::optim::LBFGS lbfgs(net.parameters());
  EXPECT_THAT(thrown_text([&] { read_optimizer_state(lbfgs, net.named_parameters()); }),
              StartsWith("unsupported: the state of LBFGS cannot be saved by parameter"));
}

TEST(OptimizerState, AParameterWithoutANameIsAnError) {
  TwoPaths net;
  TwoPaths other;
  Adam adam({net.parameters()});
  EXPECT_THAT(thrown_text([&] { read_optimizer_state(adam.optimizer, other.named_parameters()); }),
              HasSubstr("a parameter of shape [3, 3] that is not among the named parameters"));
}

TEST(OptimizerState, OptionsOfOneGroupAreNumbers) {
  torch::optim::SGDOptions options = torch::optim::SGDOptions(0.5).momentum(0.25).nesterov(true);
  EXPECT_EQ(algorithm_of(options), "SGD");
  OptimizerState::Options numbers = read_options(options);
  EXPECT_EQ(numbers,
            (OptimizerState::Options{{"lr", 0.5},
                                     {"momentum", 0.25},
                                     {"dampening", 0},
                                     {"weight_decay", 0},
                                     {"nesterov", 1}}));
  numbers["lr"] = 2;
  numbers["nesterov"] = 0;
  load_options(options, numbers);
  EXPECT_EQ(options.lr(), 2);
  EXPECT_FALSE(options.nesterov());
  numbers.erase("lr");
  EXPECT_THAT(thrown_text([&] { load_options(options, numbers); }),
              HasSubstr("option lr is missing"));
}

}  // namespace
}  // namespace peal::train
