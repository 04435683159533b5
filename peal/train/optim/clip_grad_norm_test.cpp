#include "peal/train/optim/clip_grad_norm.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/gradient_norm.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;
using torch::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor parameter_with(const Tensor& gradient) {
  Tensor parameter = torch::zeros_like(gradient).requires_grad_();
  parameter.mutable_grad() = gradient.clone();
  return parameter;
}

/// Parameters of several shapes with the same gradients in each call.
std::vector<Tensor> parameters_of(std::uint64_t seed, torch::ScalarType type = torch::kFloat32) {
  const auto random = at::detail::createCPUGenerator(seed);
  std::vector<Tensor> parameters;
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{7}, {3, 5}, {}, {40001}}) {
    parameters.push_back(parameter_with(torch::randn(shape, random, torch::kFloat64).to(type)));
  }
  return parameters;
}

void expect_gradients_close(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].grad().allclose(expected[i].grad(), 1e-5, 1e-7)) << i;
  }
}

TEST(ClipGradNormTest, ClipsAsTorchDoesForEveryNorm) {
  torch::set_num_threads(1);
  for (const double p : {2.0, 1.0, 3.0, 0.5, kInfinity}) {
    for (const double max_norm : {0.5, 1e6, 0.0}) {
      const auto mine = parameters_of(1), torchs = parameters_of(1);
      const double norm = clip_grad_norm_(mine, max_norm, {.norm_type = p});
      const double expected = torch::nn::utils::clip_grad_norm_(torchs, max_norm, p);
      EXPECT_NEAR(norm, expected, 1e-4 * expected) << p;
      expect_gradients_close(mine, torchs);
    }
  }
}

TEST(ClipGradNormTest, ATiedParameterCountsOnceAndAMissingGradientNotAtAll) {
  const Tensor tied = parameter_with(torch::tensor({3.0f, 4.0f}));
  const Tensor frozen = torch::zeros({2});
  const Tensor empty = parameter_with(torch::ones({0}));
  EXPECT_EQ(clip_grad_norm_({tied, tied, frozen, Tensor(), empty}, 1), 5);
  EXPECT_TRUE(tied.grad().allclose(torch::tensor({0.6f, 0.8f}), 1e-5, 0));
  EXPECT_EQ(clip_grad_norm_(std::vector<Tensor>{frozen}, 1), 0);
}

TEST(ClipGradNormTest, AnInfiniteMaximumOnlyMeasures) {
  const Tensor parameter = parameter_with(torch::tensor({3.0f, 4.0f}));
  EXPECT_EQ(clip_grad_norm_({parameter}, kInfinity), 5);
  EXPECT_TRUE(parameter.grad().equal(torch::tensor({3.0f, 4.0f})));
  for (const double bad : {kInfinity, kNan}) {
    const Tensor overflowed = parameter_with(torch::tensor({1.0, bad}));
    EXPECT_FALSE(std::isfinite(clip_grad_norm_({overflowed}, kInfinity)));
    EXPECT_EQ(overflowed.grad()[0].item<double>(), 1) << "the norm is " << bad;
  }
}

TEST(ClipGradNormTest, SixteenBitGradientsAreSummedWithoutTheirRounding) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    // A sum of 10^5 squares of 1 would stop at 256 in bf16 and overflow in f16.
    const Tensor parameter = parameter_with(torch::ones({100000}, type));
    EXPECT_NEAR(clip_grad_norm_({parameter}, 1), std::sqrt(1e5), 1e-9);
    EXPECT_EQ(parameter.grad().scalar_type(), type);
  }
  const auto mixed = std::vector<Tensor>{parameter_with(torch::ones({1}, torch::kBFloat16)),
                                         parameter_with(torch::ones({2}, torch::kFloat64)),
                                         parameter_with(torch::ones({1}, torch::kFloat32))};
  EXPECT_EQ(clip_grad_norm_(mixed, 4), 2);
}

TEST(ClipGradNormTest, AnyStridesComplexAndSparseGradientsCountEachElementOnce) {
  const Tensor data = torch::randn({2, 3, 4, 5}, torch::kFloat64);
  const double expected = data.norm().item<double>();
  for (const Tensor& gradient :
       {data.contiguous(torch::MemoryFormat::ChannelsLast), data.transpose(1, 3)}) {
    Tensor parameter = torch::zeros(gradient.sizes(), torch::kFloat64).requires_grad_();
    parameter.mutable_grad() = gradient;
    EXPECT_NEAR(clip_grad_norm_({parameter}, kInfinity), expected, 1e-12);
  }
  const Tensor complex = parameter_with(torch::complex(torch::tensor(3.0), torch::tensor(4.0)));
  EXPECT_EQ(clip_grad_norm_({complex}, 2.5), 5);
  EXPECT_NEAR(complex.grad().abs().item<double>(), 2.5, 1e-5);

  const Tensor rows = torch::tensor({1, 1, 4}).unsqueeze(0);  // row 1 twice
  const Tensor values = torch::tensor({1.0f, 2.0f, 4.0f});
  Tensor sparse = torch::zeros({6}).requires_grad_();
  sparse.mutable_grad() =
      torch::sparse_coo_tensor(rows, values, {6}, torch::TensorOptions(), /*is_coalesced=*/false);
  EXPECT_EQ(clip_grad_norm_({sparse}, 2.5), 5);
  EXPECT_TRUE(
      sparse.grad().to_dense().allclose(torch::tensor({0.f, 1.5f, 0.f, 0.f, 2.f, 0.f}), 1e-5));
}

TEST(ClipGradNormTest, TheNormHasTheSameBitsWithAnyNumberOfThreads) {
  const Tensor parameter = parameter_with(torch::randn({300001}));
  torch::set_num_threads(1);
  const double alone = clip_grad_norm_({parameter}, kInfinity);
  torch::set_num_threads(3);
  EXPECT_EQ(clip_grad_norm_({parameter}, kInfinity), alone);
  torch::set_num_threads(1);
}

TEST(ClipGradNormTest, ANormThatIsNotFinitePassesOrIsAnError) {
  for (const double bad : {kInfinity, kNan}) {
    for (const double p : {2.0, kInfinity}) {
      const Tensor parameter = parameter_with(torch::tensor({1.0, bad, 2.0}));
      const ClipOptions strict = {.norm_type = p, .non_finite = ClipOptions::NonFinite::kIsError};
      EXPECT_THAT(thrown_text([&] { clip_grad_norm_({parameter}, 1, strict); }),
                  HasSubstr("usage: the norm of the gradients is "));
      EXPECT_EQ(parameter.grad()[0].item<double>(), 1) << "changed in spite of the error";

      const Tensor torchs = parameter_with(torch::tensor({1.0, bad, 2.0}));
      EXPECT_FALSE(std::isfinite(clip_grad_norm_({parameter}, 1, {.norm_type = p})));
      torch::nn::utils::clip_grad_norm_(torchs, 1, p);
      EXPECT_TRUE(parameter.grad().allclose(torchs.grad(), 0, 0, /*equal_nan=*/true)) << bad;
    }
  }
}

TEST(ClipGradNormTest, WrongArgumentsAreErrors) {
  const Tensor parameter = parameter_with(torch::ones({2}));
  EXPECT_THAT(thrown_text([&] { clip_grad_norm_({parameter}, -1); }), HasSubstr("usage"));
  EXPECT_THAT(thrown_text([&] { clip_grad_norm_({parameter}, kNan); }), HasSubstr("usage"));
  EXPECT_THAT(thrown_text([&] { clip_grad_norm_({parameter}, 1, {.norm_type = 0}); }),
              HasSubstr("a norm of type 0 does not exist"));
  Tensor csr = torch::zeros({2, 2}).requires_grad_();
  csr.mutable_grad() = torch::eye(2).to_sparse_csr();
  EXPECT_THAT(thrown_text([&] { clip_grad_norm_({csr}, 1); }),
              HasSubstr("unsupported: a gradient of type Float and layout SparseCsr"));
}

/// Each rank has its part of every gradient, and two parameters that all ranks have.
TEST(ClipGradNormTest, ShardedGradientsAreClippedByTheNormOfTheWholeModel) {
  for (const double p : {2.0, 1.0, 3.0, kInfinity}) {
    for (const int ranks : {2, 3}) {
      std::vector<Tensor> whole = parameters_of(1);
      std::vector<Tensor> replicated = parameters_of(2);
      const std::size_t shared = whole.size();
      whole.insert(whole.end(), replicated.begin(), replicated.end());
      const double expected = torch::nn::utils::clip_grad_norm_(whole, 0.5, p);

      struct Part {
        double norm;
        std::vector<Tensor> shards, replicas;  // clipped gradients
      };
      const auto parts = on_ranks(ranks, [&](const ProcessGroupPtr& group) {
        ShardedParameters mine;
        for (const Tensor& parameter : parameters_of(1)) {
          const Tensor flat = parameter.grad().flatten();
          const auto chunks = flat.tensor_split(group->size());  // some are empty
          mine.shards.push_back(parameter_with(chunks[static_cast<std::size_t>(group->rank())]));
        }
        mine.replicas = parameters_of(2);
        mine.replicas.push_back(mine.replicas[0]);  // tied
        const double norm = clip_grad_norm_(*group, mine, 0.5, {.norm_type = p});
        return Part{norm, gradients_of(mine.shards), gradients_of(mine.replicas)};
      });
      for (const Part& part : parts) {
        EXPECT_NEAR(part.norm, expected, 1e-4 * expected) << p;
        EXPECT_EQ(part.norm, parts[0].norm) << "other bits";
        for (std::size_t i = 0; i < part.replicas.size(); ++i) {
          EXPECT_TRUE(part.replicas[i].equal(parts[0].replicas[i]));
          EXPECT_TRUE(part.replicas[i].allclose(whole[shared + i].grad(), 1e-4, 1e-7));
        }
      }
      for (std::size_t i = 0; i < shared; ++i) {
        std::vector<Tensor> shards;
        for (const Part& part : parts) shards.push_back(part.shards[i]);
        EXPECT_TRUE(torch::cat(shards).allclose(whole[i].grad().flatten(), 1e-4, 1e-7));
      }
    }
  }
}

TEST(ClipGradNormTest, ANanOnOneRankIsTheNormOnAllRanks) {
  for (const double p : {2.0, kInfinity}) {
    const auto errors = on_ranks(2, [&](const ProcessGroupPtr& group) {
      const double value = group->rank() == 0 ? 1.0 : kNan;
      ShardedParameters mine = {.shards = {parameter_with(torch::tensor({value}))}};
      EXPECT_TRUE(std::isnan(clip_grad_norm_(*group, mine, kInfinity, {.norm_type = p})));
      mine.shards[0].mutable_grad().fill_(value);
      return thrown_text([&] {
        clip_grad_norm_(
            *group, mine, 1, {.norm_type = p, .non_finite = ClipOptions::NonFinite::kIsError});
      });
    });
    for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("gradients is nan"));
  }
}

TEST(ClipGradNormTest, ARankWithoutGradientsTakesPart) {
  const auto norms = on_ranks(2, [](const ProcessGroupPtr& group) {
    ShardedParameters mine;
    if (group->rank() == 1) mine.shards = {parameter_with(torch::tensor({3.0, 4.0}))};
    return clip_grad_norm_(*group, mine, 1);
  });
  EXPECT_THAT(norms, ::testing::Each(5.0));
}

}  // namespace
}  // namespace peal::train
