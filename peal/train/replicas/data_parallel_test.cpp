#include "peal/train/replicas/data_parallel.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/replicas/testing/passes.h"
#include "peal/train/testing/nets.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::expect_close;
using testing::flat_gradients;
using testing::flat_parameters;
using ::testing::HasSubstr;
using testing::loss_of;
using testing::make_batch;
using testing::make_net;
using testing::on_cpus;
using testing::thrown_text;
using torch::Tensor;

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
