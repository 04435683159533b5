// The modules of a DataParallel: how replicas are made, and modules that change between passes.
#include <atomic>
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/replicas/testing/passes.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::expect_close;
using testing::flat_gradients;
using ::testing::HasSubstr;
using testing::loss_of;
using testing::make_batch;
using testing::make_net;
using testing::on_cpus;
using testing::thrown_text;
using torch::Tensor;

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

TEST(DataParallelTest, ADeviceThatIsNotThereIsAUsageError) {
  torch::nn::Linear net(3, 2);
  const auto error_with = [&](const torch::Device& device) {
    return thrown_text([&] { DataParallel model(net, {.devices = {torch::kCPU, device}}); });
  };
  EXPECT_THAT(error_with({torch::kCUDA, 99}),
              HasSubstr("usage: DataParallel: cuda:99 is not available: this machine has "));
  if (torch::cuda::device_count() > 0) return;
  EXPECT_THAT(error_with(torch::kCUDA),
              HasSubstr("usage: DataParallel: cuda is not available: this machine has 0 GPUs"));
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

}  // namespace
}  // namespace peal::train
