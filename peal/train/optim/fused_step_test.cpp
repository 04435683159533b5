#include "peal/train/optim/fused_step.h"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/optim/optimizer_state.h"

namespace peal::train {
namespace {

using torch::Tensor;
using Groups = std::vector<torch::optim::OptimizerParamGroup>;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;

struct FusedCase {
  std::string name;
  std::function<OptimizerPtr(const Groups&)> make;
  friend std::ostream& operator<<(std::ostream& out, const FusedCase& of) { return out << of.name; }
};

template <class Optimizer, class Options>
FusedCase fused_case(std::string name, Options options) {
  return {std::move(name), [options](const Groups& groups) -> OptimizerPtr {
            return std::make_unique<Optimizer>(groups, options);
          }};
}

/// Those whose optimizers have a kernel.
std::vector<FusedCase> fused_cases() {
  namespace optim = torch::optim;
  return {
      fused_case<optim::SGD>("Sgd", optim::SGDOptions(0.1).weight_decay(0.01)),
      fused_case<optim::SGD>("SgdMomentum", optim::SGDOptions(0.1).momentum(0.9).dampening(0.2)),
      fused_case<optim::SGD>("SgdNesterov", optim::SGDOptions(0.1).momentum(0.9).nesterov(true)),
      fused_case<optim::Adam>("Adam", optim::AdamOptions(0.05).betas({0.8, 0.99})),
      fused_case<optim::Adam>("AdamAmsgrad",
                              optim::AdamOptions(0.05).weight_decay(0.02).amsgrad(true)),
      fused_case<optim::AdamW>("AdamW", optim::AdamWOptions(0.05).weight_decay(0.1)),
      fused_case<optim::AdamW>("AdamWAmsgrad", optim::AdamWOptions(0.05).eps(1e-5).amsgrad(true)),
      fused_case<optim::Adagrad>(
          "Adagrad", optim::AdagradOptions(0.1).lr_decay(0.01).initial_accumulator_value(0.3)),
  };
}

FusedCase case_without_kernel() {
  return fused_case<torch::optim::RMSprop>(
      "RmsProp", torch::optim::RMSpropOptions(0.05).momentum(0.5).centered(true));
}

/// Some tensors of all sizes, among them one in channels_last.
std::vector<Tensor> make_parameters(torch::ScalarType type) {
  const auto random = at::detail::createCPUGenerator(3);
  std::vector<Tensor> parameters;
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{7, 5}, {1}, {0}, {4000}, {2, 3, 4, 5}, {}}) {
    Tensor values = torch::randn(sizes, random, torch::kFloat64).to(type);
    if (values.dim() == 4) values = values.contiguous(torch::MemoryFormat::ChannelsLast);
    parameters.push_back(values.set_requires_grad(true));
  }
  return parameters;
}

/// Gives gradients to the parameters. In some steps, some have no gradient.
void give_gradients(const std::vector<Tensor>& parameters, int step) {
  const auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor values = torch::randn(parameters[i].sizes(), random, torch::kFloat64)
                              .to(parameters[i].scalar_type());
    const bool has_gradient = (i + static_cast<std::size_t>(step)) % 4 != 0;
    Tensor& gradient = parameters[i].mutable_grad();
    gradient = has_gradient ? torch::empty_like(parameters[i].detach()).copy_(values) : Tensor();
    // A gradient may have other strides than its parameter.
    if (has_gradient && step % 5 == 1) gradient = gradient.contiguous();
  }
}

Groups split_in_groups(const std::vector<Tensor>& parameters) {
  return {torch::optim::OptimizerParamGroup({parameters.begin(), parameters.begin() + 2}),
          torch::optim::OptimizerParamGroup({parameters.begin() + 2, parameters.end()})};
}

NamedParameters named(const std::vector<Tensor>& parameters) {
  NamedParameters all;
  for (std::size_t i = 0; i < parameters.size(); ++i) all.insert(std::to_string(i), parameters[i]);
  return all;
}

class FusedStep : public ::testing::TestWithParam<FusedCase> {
 protected:
  /// Compares the parameters after each step of both kinds, and the states at the end.
  void compare(torch::ScalarType type, double tolerance) const {
    const auto fused = make_parameters(type);
    const auto plain = make_parameters(type);
    const OptimizerPtr fused_optimizer = GetParam().make(split_in_groups(fused));
    const OptimizerPtr plain_optimizer = GetParam().make(split_in_groups(plain));
    for (int step = 0; step < 50; ++step) {
      for (const auto& optimizer : {fused_optimizer.get(), plain_optimizer.get()}) {
        optimizer->param_groups()[1].options().set_lr(0.1 / (1 + step));
      }
      give_gradients(fused, step);
      give_gradients(plain, step);
      fused_step(*fused_optimizer);
      plain_optimizer->step();
      for (std::size_t i = 0; i < fused.size(); ++i) {
        ASSERT_TRUE(fused[i].allclose(plain[i], tolerance, tolerance)) << i << ", step " << step;
        ASSERT_EQ(fused[i].grad().defined(), plain[i].grad().defined());
      }
    }
    compare_states(read_optimizer_state(*fused_optimizer, named(fused)),
                   read_optimizer_state(*plain_optimizer, named(plain)),
                   tolerance);
  }

  static void compare_states(const OptimizerState& one,
                             const OptimizerState& other,
                             double tolerance) {
    ASSERT_EQ(one.parameters.size(), other.parameters.size());
    for (const auto& [name, fields] : one.parameters) {
      ASSERT_EQ(fields.size(), other.parameters.at(name).size());
      for (const auto& [field, value] : fields) {
        EXPECT_TRUE(value.allclose(other.parameters.at(name).at(field), tolerance, tolerance))
            << name << " " << field;
      }
    }
  }
};

class FusedHalfStep : public FusedStep {};

TEST_P(FusedStep, IsTheStepOfTheOptimizerInF64) { compare(torch::kFloat64, 1e-12); }
TEST_P(FusedStep, IsTheStepOfTheOptimizerInF32) { compare(torch::kFloat32, 1e-4); }

// The optimizer itself rounds after each operation, and in f16 its eps is 0.
TEST_P(FusedHalfStep, IsCloseToThatInF32ForBf16AndF16) {
  for (const auto& [type, tolerance] :
       {std::pair(torch::kBFloat16, 0.1), std::pair(torch::kFloat16, 0.01)}) {
    const auto parameters = make_parameters(type);
    const auto in_f32 = make_parameters(torch::kFloat32);
    const OptimizerPtr optimizer = GetParam().make(split_in_groups(parameters));
    const OptimizerPtr f32_optimizer = GetParam().make(split_in_groups(in_f32));
    for (int step = 0; step < 6; ++step) {
      give_gradients(parameters, step);
      give_gradients(in_f32, step);
      fused_step(*optimizer);
      fused_step(*f32_optimizer);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(parameters[i].to(torch::kFloat32).allclose(in_f32[i], tolerance, tolerance))
          << type << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers,
                         FusedStep,
                         ::testing::ValuesIn(fused_cases()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(WithoutKernel,
                         FusedStep,
                         ::testing::Values(case_without_kernel()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Optimizers,
                         FusedHalfStep,
                         ::testing::ValuesIn(fused_cases()),
                         [](const auto& of) { return of.param.name; });

TEST(FusedStepTest, SparseGradientsAreLeftToTheOptimizer) {
  const auto train = [](bool fused) {
    torch::manual_seed(1);
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(10, 3).sparse(true));
    torch::nn::Linear layer(3, 2);
    std::vector<Tensor> parameters = table->parameters();
    for (const Tensor& parameter : layer->parameters()) parameters.push_back(parameter);
    torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.1));
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      layer(table(torch::tensor({1, 4, 4}))).square().sum().backward();
      if (fused) {
        fused_step(optimizer);
      } else {
        optimizer.step();
      }
    }
    return torch::cat({parameters[0].flatten(), parameters[1].flatten()}).detach();
  };
  EXPECT_TRUE(train(true).allclose(train(false)));
}

TEST(FusedStepTest, AStepOfADerivedClassIsItsOwn) {
  struct Still final : torch::optim::SGD {
    using SGD::SGD;
    Tensor step(LossClosure) override {
      ++steps;
      return {};
    }
    int steps = 0;
  };
  const Tensor value = torch::ones({2}).set_requires_grad(true);
  value.mutable_grad() = torch::ones({2});
  Still optimizer(std::vector<Tensor>{value}, torch::optim::SGDOptions(0.1));
  fused_step(optimizer);
  EXPECT_TRUE(value.equal(torch::ones({2})));
  EXPECT_EQ(optimizer.steps, 1);
}

TEST(FusedStepTest, GradientsStayAfterAStepThatIsPartlyFused) {
  const Tensor dense = torch::ones({2}).set_requires_grad(true);
  const Tensor strided = torch::ones({2, 2}).set_requires_grad(true);
  dense.mutable_grad() = torch::full({2}, 2.0);
  strided.mutable_grad() = torch::full({2, 2}, 2.0).t();
  torch::optim::SGD optimizer(std::vector<Tensor>{dense, strided}, torch::optim::SGDOptions(0.5));
  fused_step(optimizer);
  EXPECT_TRUE(dense.equal(torch::zeros({2})));
  EXPECT_TRUE(strided.equal(torch::zeros({2, 2})));
  EXPECT_TRUE(dense.grad().equal(torch::full({2}, 2.0)));
  EXPECT_TRUE(strided.grad().defined());
}

}  // namespace
}  // namespace peal::train
