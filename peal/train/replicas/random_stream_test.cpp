#include "peal/train/replicas/random_stream.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace peal::train {
namespace {

torch::Tensor drawn(std::uint64_t seed, int number, const std::function<torch::Tensor()>& draw) {
  const RandomStream stream(seed, number);
  return draw();
}

TEST(RandomStreamTest, StreamsWithTheSameSeedAndNumberAreEqualAndOthersAreNot) {
  const auto draw = [] { return torch::randn({100}); };
  const torch::Tensor values = drawn(5, 1, draw);
  torch::randn({7});
  EXPECT_TRUE(drawn(5, 1, draw).equal(values));
  EXPECT_FALSE(drawn(5, 2, draw).equal(values));
  EXPECT_FALSE(drawn(6, 1, draw).equal(values));
  EXPECT_FALSE(drawn(6, 0, draw).equal(values)) << "only the sum of seed and number counts";
}

TEST(RandomStreamTest, AStreamContinuesFromOperationToOperation) {
  const torch::Tensor twice = drawn(5, 0, [] {
    const torch::Tensor first = torch::rand({3});
    return torch::stack({first, torch::rand({3})});
  });
  EXPECT_FALSE(twice[0].equal(twice[1]));
}

/// Each operation that draws numbers, in many forms.
std::vector<std::function<torch::Tensor()>> random_operations() {
  const torch::Tensor x = torch::full({50}, 0.5);
  return {
      [] { return torch::rand({50}); },
      [] { return torch::randn({50}); },
      [] { return torch::randint(1000, {50}).to(torch::kFloat); },
      [] { return torch::randperm(50).to(torch::kFloat); },
      [x] { return torch::rand_like(x); },
      [x] { return torch::randn_like(x); },
      [x] { return torch::randint_like(x, 1000); },
      [x] { return torch::dropout(x, 0.5, true); },
      [x] {
        return torch::feature_dropout(x.view({5, 10}), 0.5, true);
      },
      [x] { return torch::alpha_dropout(x, 0.5, true); },
      [x] { return std::get<0>(torch::native_dropout(x, 0.5, true)); },
      [x] { return torch::rrelu(-x, 0.1, 0.9, true); },
      [x] { return torch::bernoulli(x); },
      [x] { return torch::poisson(x * 10); },
      [x] { return torch::binomial(x * 100, x); },
      [x] { return at::normal(x, x); },
      [x] { return torch::multinomial(x, 20).to(torch::kFloat); },
      [x] { return torch::_standard_gamma(x); },
      [x] { return torch::_sample_dirichlet(x); },
      [x] { return x.clone().exponential_(); },
      [x] { return x.clone().cauchy_(); },
      [x] { return x.clone().log_normal_(); },
      [x] { return x.clone().geometric_(0.1); },
      [x] { return x.clone().random_(); },
      [x] { return x.clone().uniform_(); },
      [x] { return x.clone().normal_(); },
  };
}

TEST(RandomStreamTest, EveryRandomOperationDrawsFromTheStreamAndLeavesTheGeneratorAlone) {
  const auto operations = random_operations();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    torch::manual_seed(1);
    const torch::Tensor next = torch::rand({4});
    torch::manual_seed(1);
    const torch::Tensor values = drawn(5, 0, operations[i]);
    EXPECT_TRUE(torch::rand({4}).equal(next)) << "operation " << i;
    torch::manual_seed(2);
    EXPECT_TRUE(drawn(5, 0, operations[i]).equal(values)) << "operation " << i;
    EXPECT_FALSE(drawn(6, 0, operations[i]).equal(values)) << "operation " << i;
  }
}

TEST(RandomStreamTest, TheSeedFollowsFromLibTorchsGenerator) {
  torch::manual_seed(3);
  const std::uint64_t seed = draw_seed();
  EXPECT_NE(draw_seed(), seed);
  torch::manual_seed(3);
  EXPECT_EQ(draw_seed(), seed);
}

TEST(RandomStreamTest, AfterAStreamTheThreadUsesTheGeneratorAgain) {
  torch::manual_seed(4);
  const torch::Tensor values = torch::rand({4});
  torch::manual_seed(4);
  drawn(5, 0, [] { return torch::rand({4}); });
  EXPECT_TRUE(torch::rand({4}).equal(values));
}

}  // namespace
}  // namespace peal::train
