#include "peal/train/replicas/data_parallel.h"

#include <ATen/autocast_mode.h>

#include <atomic>
#include <future>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::thrown_text;
using torch::Tensor;

ReplicaOptions on_cpus(int count) {
  return {.devices = std::vector<torch::Device>(static_cast<std::size_t>(count), torch::kCPU)};
}

torch::nn::Sequential make_net() {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(3, 5), torch::nn::Tanh(), torch::nn::Linear(5, 2));
  net->to(torch::kFloat64);
  return net;
}

Tensor make_batch(std::int64_t samples) {
  const auto random = at::detail::createCPUGenerator(7);
  return torch::randn({samples, 3}, random, torch::kFloat64);
}

/// A loss whose gradient differs for each sample.
Tensor loss_of(const Tensor& output) {
  return (output.square() * torch::arange(1, output.size(0) + 1).view({-1, 1})).sum();
}

void expect_close(const Tensor& one, const Tensor& other) {
  EXPECT_TRUE(one.allclose(other, 1e-12, 1e-12)) << one << other;
}

TEST(DataParallelTest, OutputsAndGradientsAreThoseOfTheModuleOnTheWholeBatch) {
  for (const int replicas : {1, 2, 3, 4}) {
    for (const std::int64_t samples : {0, 1, 2, 3, 7, 8}) {
      auto net = make_net();
      auto plain = make_net();
      DataParallel model(net, on_cpus(replicas));
      Tensor x = make_batch(samples).requires_grad_();
      Tensor plain_x = make_batch(samples).requires_grad_();
      const Tensor output = model.forward(x);
      const Tensor plain_output = plain->forward(plain_x);
      expect_close(output, plain_output);
      loss_of(output).backward();
      loss_of(plain_output).backward();
      expect_close(flat_gradients(*net), flat_gradients(*plain));
      expect_close(x.grad(), plain_x.grad());
    }
  }
}

TEST(DataParallelTest, TrainingIsThatOfTheModule) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel model(net, on_cpus(3));
  torch::optim::Adam optimizer(net->parameters());
  torch::optim::Adam plain_optimizer(plain->parameters());
  for (int step = 0; step < 20; ++step) {
    const Tensor x = make_batch(2 + step % 5);
    optimizer.zero_grad();
    loss_of(model.forward(x)).backward();
    optimizer.step();
    plain_optimizer.zero_grad();
    loss_of(plain->forward(x)).backward();
    plain_optimizer.step();
    expect_close(flat_parameters(*net), flat_parameters(*plain));
  }
}

TEST(DataParallelTest, GradientsOfSeveralPassesAddUp) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel model(net, on_cpus(2));
  for (const std::int64_t samples : {4, 3}) {
    loss_of(model.forward(make_batch(samples))).backward();
    loss_of(plain->forward(make_batch(samples))).backward();
  }
  expect_close(flat_gradients(*net), flat_gradients(*plain));
}

TEST(DataParallelTest, TwoPassesMayComeBeforeOneBackwardPass) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel model(net, on_cpus(2));
  const Tensor first = model.forward(make_batch(4));
  const Tensor second = model.forward(make_batch(5));
  {
    const torch::NoGradGuard no_grad;
    model.forward(make_batch(6));
  }
  (loss_of(first) + loss_of(second)).backward();
  (loss_of(plain->forward(make_batch(4))) + loss_of(plain->forward(make_batch(5)))).backward();
  expect_close(flat_gradients(*net), flat_gradients(*plain));
}

TEST(DataParallelTest, AChangeInPlaceBetweenForwardAndBackwardIsAnErrorAsForTheModule) {
  auto net = make_net();
  DataParallel model(net, on_cpus(2));
  const Tensor output = model.forward(make_batch(4));
  {
    const torch::NoGradGuard no_grad;
    net->named_parameters()["2.weight"].mul_(2);
  }
  model.forward(make_batch(4));
  EXPECT_THAT(thrown_text([&] { loss_of(output).backward(); }),
              HasSubstr("modified by an inplace"));
}

TEST(DataParallelTest, ADerivativeOfADerivativeIsThatOfTheModule) {
  const auto second_derivative = [](torch::nn::Sequential net, auto&& model) {
    const Tensor x = make_batch(5).requires_grad_();
    const Tensor loss = loss_of(model.forward(x));
    const auto first = torch::autograd::grad({loss}, net->parameters(), {}, true, true);
    Tensor sum = torch::zeros({}, torch::kFloat64);
    for (const Tensor& gradient : first) sum = sum + gradient.square().sum();
    sum.backward();
    return torch::cat({flat_gradients(*net), x.grad().flatten()});
  };
  auto net = make_net();
  auto plain = make_net();
  DataParallel model(net, on_cpus(3));
  expect_close(second_derivative(net, model), second_derivative(plain, *plain));
}

// ---- modules

/// Counts how many of it are made.
struct Counted : torch::nn::Cloneable<Counted> {
  explicit Counted(std::atomic<int>& made) : made_(&made) { reset(); }
  void reset() override {
    ++*made_;
    linear = register_module("linear", torch::nn::Linear(3, 2));
  }
  Tensor forward(const Tensor& x) { return linear(x); }

  std::atomic<int>* made_;
  torch::nn::Linear linear = nullptr;
};

TEST(DataParallelTest, ReplicasAreKeptBetweenPasses) {
  std::atomic<int> made = 0;
  const auto net = std::make_shared<Counted>(made);
  DataParallel model(net, on_cpus(3));
  const int after_construction = made;
  EXPECT_EQ(after_construction, 3);
  for (int pass = 0; pass < 3; ++pass) model.forward(torch::randn({6, 3})).sum().backward();
  EXPECT_EQ(made, after_construction);
}

TEST(DataParallelTest, MakingReplicasDrawsNoRandomNumbers) {
  auto net = make_net();
  torch::manual_seed(5);
  const Tensor next = torch::rand({4});
  torch::manual_seed(5);
  const DataParallel model(net, on_cpus(3));
  EXPECT_TRUE(torch::rand({4}).equal(next));
}

TEST(DataParallelTest, AModuleThatCannotBeClonedNeedsAFunctionThatMakesAnother) {
  const auto net = std::make_shared<testing::SmallNet>();
  const std::string text = thrown_text([&] { DataParallel model(net, on_cpus(2)); });
  EXPECT_THAT(text, HasSubstr("usage: DataParallel cannot clone the module"));
  EXPECT_THAT(text, HasSubstr("pass a function that makes another one"));

  DataParallel model(net, on_cpus(2), [] { return std::make_shared<testing::SmallNet>(); });
  const Tensor x = torch::randn({5, 1, 8, 8});
  EXPECT_TRUE(model.forward(x).allclose(net->forward(x), 1e-5, 1e-6));
}

TEST(DataParallelTest, AReplicaOfAnotherStructureIsAUsageError) {
  torch::nn::Linear net(3, 2);
  EXPECT_THAT(thrown_text([&] {
                DataParallel model(net, on_cpus(2), [] { return torch::nn::Linear(3, 4).ptr(); });
              }),
              HasSubstr("weight is missing or has another shape"));
}

TEST(DataParallelTest, AModuleOnAnotherDeviceIsAUsageErrorThatNamesTheParameter) {
  torch::nn::Linear net(3, 2);
  EXPECT_THAT(thrown_text([&] {
                DataParallel model(net, {.devices = {torch::kMeta, torch::kCPU}});
              }),
              HasSubstr("the parameter weight is on cpu, and the first device is meta"));
}

/// Uses one weight in two places, and has one parameter under two names.
struct Tied : torch::nn::Cloneable<Tied> {
  Tied() { reset(); }
  void reset() override {
    layer = register_module("layer", torch::nn::Linear(3, 3));
    scale = register_parameter("scale", torch::full({3}, 1.5));
    again = register_parameter("again", scale);
  }
  Tensor forward(const Tensor& x) {
    return torch::linear(torch::tanh(layer(x) * scale), layer->weight.t()) * again;
  }
  torch::nn::Linear layer = nullptr;
  Tensor scale;
  Tensor again;
};

TEST(DataParallelTest, TiedWeightsGetTheGradientsOfAllUses) {
  const auto nets = testing::replicas<Tied>(2);
  for (const auto& net : nets) net->to(torch::kFloat64);
  DataParallel model(nets[0], on_cpus(2));
  loss_of(model.forward(make_batch(5))).backward();
  loss_of(nets[1]->forward(make_batch(5))).backward();
  expect_close(flat_gradients(*nets[0]), flat_gradients(*nets[1]));
}

TEST(DataParallelTest, FrozenParametersGetNoGradientAndMayChange) {
  auto net = make_net();
  auto plain = make_net();
  const auto weight_of = [](const torch::nn::Sequential& of, const char* name) {
    return of->named_parameters()[name];
  };
  weight_of(net, "0.weight").set_requires_grad(false);
  DataParallel model(net, on_cpus(2));
  const auto compare = [&] {
    net->zero_grad();
    plain->zero_grad();
    loss_of(model.forward(make_batch(5))).backward();
    loss_of(plain->forward(make_batch(5))).backward();
    expect_close(flat_gradients(*net), flat_gradients(*plain));
  };
  weight_of(plain, "0.weight").set_requires_grad(false);
  compare();
  EXPECT_FALSE(weight_of(net, "0.weight").grad().defined());
  for (const auto& of : {net, plain}) {
    weight_of(of, "0.weight").set_requires_grad(true);
    weight_of(of, "2.bias").set_requires_grad(false);
  }
  compare();
  EXPECT_FALSE(weight_of(net, "2.bias").grad().defined());
  for (const auto& of : {net, plain}) {
    for (const Tensor& parameter : of->parameters()) parameter.set_requires_grad(false);
  }
  EXPECT_FALSE(model.forward(make_batch(5)).requires_grad());
}

TEST(DataParallelTest, AGraphStaysValidWhenItsParametersAreFrozenLater) {
  auto net = make_net();
  auto plain = make_net();
  DataParallel model(net, on_cpus(2));
  const Tensor output = model.forward(make_batch(5));
  Tensor weight = net->named_parameters()["2.weight"];
  weight.set_requires_grad(false);
  model.forward(make_batch(5));
  weight.set_requires_grad(true);
  loss_of(output).backward();
  loss_of(plain->forward(make_batch(5))).backward();
  expect_close(flat_gradients(*net), flat_gradients(*plain));
}

TEST(DataParallelTest, AModuleThatWasLoadedConvertedOrExtendedIsUsedAsItIs) {
  auto net = make_net();
  DataParallel model(net, on_cpus(2));
  model.forward(make_batch(4)).sum().backward();

  auto other = make_net();
  {
    const torch::NoGradGuard no_grad;
    for (Tensor parameter : other->parameters()) parameter.mul_(3);
  }
  std::stringstream file;
  torch::save(other, file);
  torch::load(net, file);
  const auto expect_same = [&](const Tensor& x) {
    EXPECT_TRUE(model.forward(x).allclose(net->forward(x), 1e-5, 1e-6));
  };
  expect_same(make_batch(4));
  net->to(torch::kFloat32);
  expect_same(make_batch(4).to(torch::kFloat32));
  net->push_back(torch::nn::Linear(2, 4));
  expect_same(make_batch(4).to(torch::kFloat32));
  EXPECT_EQ(model.forward(make_batch(4).to(torch::kFloat32)).size(1), 4);
}

TEST(DataParallelTest, ValuesWrittenThroughDataAreUsedToo) {
  auto net = make_net();
  DataParallel model(net, on_cpus(2));
  model.forward(make_batch(4));
  net->parameters()[0].data().mul_(2);
  expect_close(model.forward(make_batch(4)), net->forward(make_batch(4)));
}

// ---- state

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

// ---- random numbers

/// Lets one replica after the other draw, in an order that the test chooses. A replica knows itself
/// by its number of samples.
struct Turns {
  Guarded<std::vector<std::int64_t>> order;

  void wait_for(std::int64_t samples) {
    order.wait(
        Deadline::after(testing::kLimit),
        [&](const auto& left) { return left.empty() || left.front() == samples; },
        [](const auto&) {});
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

// ---- arguments and errors

struct ManyArguments : torch::nn::Cloneable<ManyArguments> {
  void reset() override {}
  std::tuple<Tensor, std::vector<Tensor>> forward(const Tensor& x,
                                                  double factor,
                                                  std::vector<Tensor> list,
                                                  const std::optional<Tensor>& none) {
    EXPECT_FALSE(none.has_value());
    return {x * factor, {list.at(0) + 1, x.sum()}};
  }
};

TEST(DataParallelTest, ArgumentsAndOutputsMayBeListsTuplesAndNumbers) {
  DataParallel model(std::make_shared<ManyArguments>(), on_cpus(2));
  const Tensor x = torch::arange(3).view({3, 1});
  const auto [first, list] =
      model.forward(x, 2.5, std::vector<Tensor>{x + 10}, std::optional<Tensor>());
  EXPECT_TRUE(first.equal(x * 2.5));
  EXPECT_TRUE(list.at(0).equal(x + 11));
  EXPECT_TRUE(list.at(1).equal(torch::tensor({1, 2})));
}

TEST(DataParallelTest, SamplesMayBeInAnotherDimension) {
  struct Columns : torch::nn::Cloneable<Columns> {
    void reset() override {}
    Tensor forward(const Tensor& x) { return x - x.mean(0, true); }
  };
  const auto net = std::make_shared<Columns>();
  ReplicaOptions options = on_cpus(3);
  options.dim = 1;
  DataParallel model(net, options);
  const Tensor x = torch::randn({4, 7});
  EXPECT_TRUE(model.forward(x).allclose(net->forward(x)));
}

struct Failing : torch::nn::Cloneable<Failing> {
  enum class How { kNot, kPeal, kTorch, kOther };
  void reset() override {}
  Tensor forward(const Tensor& x, How how) {
    if (x.size(0) == 3) return x;  // replica 0
    if (how == How::kPeal) throw Error(ErrorKind::kTimeout, "too late", {.rank = 4});
    if (how == How::kTorch) return torch::matmul(x, torch::ones({9, 9}));
    if (how == How::kOther) throw std::out_of_range("row 9");
    return x;
  }
};

TEST(DataParallelTest, AnErrorOfAReplicaNamesTheReplicaAndTheNextPassWorks) {
  using How = Failing::How;
  DataParallel model(std::make_shared<Failing>(), on_cpus(3));
  const Tensor x = torch::ones({7, 2});
  const auto error_of_pass = [&](How how) {
    try {
      model.forward(x, how);
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorKind::kBug, "no error");
  };
  const Error error = error_of_pass(How::kPeal);
  EXPECT_EQ(error.message(), "DataParallel: replica 1 on cpu failed: too late");
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_EQ(error.details().rank, 4);
  EXPECT_THAT(error_of_pass(How::kTorch).what(),
              HasSubstr("usage: DataParallel: replica 1 on cpu"));
  EXPECT_THAT(error_of_pass(How::kOther).what(), HasSubstr("row 9"));
  try {
    model.forward(x, How::kOther);
  } catch (const std::exception& outer) {
    EXPECT_THROW(std::rethrow_if_nested(outer), std::out_of_range);
  }
  EXPECT_TRUE(model.forward(x, How::kNot).equal(x));
}

TEST(DataParallelTest, ThePartsOfAPassAreTimed) {
  auto net = make_net();
  DataParallel model(net, on_cpus(2));
  loss_of(model.forward(make_batch(50))).backward();
  for (const Duration part : {model.times().scatter,
                              model.times().copy,
                              model.times().apply,
                              model.times().gather,
                              model.times().reduce}) {
    EXPECT_GT(part, Duration(0));
  }
}

}  // namespace
}  // namespace peal::train
