// Every rank's SyncBatchNorm computes what one process computes with torch's batch normalization on
// the whole batch.
#include "peal/train/nn/sync_batch_norm.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;
using torch::Tensor;
using torch::nn::BatchNormOptions;

constexpr std::int64_t kChannels = 3;
constexpr int kSteps = 2;

struct Case {
  std::string name;
  std::vector<std::int64_t> counts;  // samples of each rank
  std::vector<std::int64_t> rest;    // dimensions after the channels
  BatchNormOptions options = BatchNormOptions(kChannels);
  torch::ScalarType type = torch::kFloat64;
  torch::MemoryFormat format = torch::MemoryFormat::Contiguous;
};

/// What a rank, or the one process, computed.
struct Outcome {
  std::vector<Tensor> outputs, input_gradients;  // by step
  Tensor weight_gradient, bias_gradient;
  Tensor running_mean, running_var, num_batches_tracked;
};

Tensor whole_batch(const Case& one, int step, std::uint64_t seed) {
  const auto random = at::detail::createCPUGenerator(seed + static_cast<std::uint64_t>(step));
  std::vector<std::int64_t> shape = {0, kChannels};
  for (const std::int64_t count : one.counts) shape[0] += count;
  shape.insert(shape.end(), one.rest.begin(), one.rest.end());
  const Tensor batch = torch::randn(shape, random, torch::kFloat64) * 2 + 5;
  return batch.to(one.type).contiguous(one.format);
}

/// Trains for some steps on rows `from` to `to` of the batches, with weights that are not 1.
template <class Norm>
Outcome run(Norm& norm, const Case& one, std::int64_t from, std::int64_t to) {
  norm->to(one.type);
  if (norm->weight.defined()) {
    const torch::NoGradGuard no_grad;
    norm->weight.copy_(torch::linspace(0.5, 2, kChannels));
    norm->bias.copy_(torch::linspace(-1, 1, kChannels));
  }
  Outcome outcome;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor input =
        whole_batch(one, step, 10).slice(0, from, to).contiguous(one.format).requires_grad_();
    const Tensor gradient = whole_batch(one, step, 77).slice(0, from, to);
    const Tensor output = norm->forward(input);
    EXPECT_EQ(output.scalar_type(), one.type);
    EXPECT_TRUE(output.is_contiguous(one.format)) << one.name;
    output.backward(gradient);
    outcome.outputs.push_back(output.detach());
    outcome.input_gradients.push_back(input.grad());
  }
  if (norm->weight.defined()) {
    outcome.weight_gradient = norm->weight.grad();
    outcome.bias_gradient = norm->bias.grad();
  }
  outcome.running_mean = norm->running_mean;
  outcome.running_var = norm->running_var;
  outcome.num_batches_tracked = norm->num_batches_tracked;
  return outcome;
}

Outcome run_alone(const Case& one) {
  std::int64_t samples = 0;
  for (const std::int64_t count : one.counts) samples += count;
  if (one.rest.size() == 2) {
    torch::nn::BatchNorm2d norm(one.options);
    return run(norm, one, 0, samples);
  }
  if (one.rest.size() == 3) {
    torch::nn::BatchNorm3d norm(one.options);
    return run(norm, one, 0, samples);
  }
  torch::nn::BatchNorm1d norm(one.options);
  return run(norm, one, 0, samples);
}

void expect_close(const Tensor& found, const Tensor& expected, const Case& one, const char* what) {
  ASSERT_EQ(found.defined(), expected.defined()) << one.name << ": " << what;
  if (!found.defined()) return;
  ASSERT_EQ(found.sizes(), expected.sizes()) << one.name << ": " << what;
  if (found.numel() == 0) return;
  const double tolerance = one.type == torch::kFloat64 ? 1e-9 : 1e-5;
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LT((found - expected).abs().max().item<double>(), tolerance * scale)
      << one.name << ": " << what;
}

Tensor total(const std::vector<Outcome>& ranks, Tensor Outcome::*gradient) {
  Tensor sum = ranks[0].*gradient;
  for (std::size_t rank = 1; sum.defined() && rank < ranks.size(); ++rank) {
    sum = sum + ranks[rank].*gradient;
  }
  return sum;
}

void expect_equal_to_one_process(const std::vector<Outcome>& ranks, const Case& one) {
  const Outcome alone = run_alone(one);
  for (std::size_t step = 0; step < kSteps; ++step) {
    std::vector<Tensor> outputs, gradients;
    for (const Outcome& rank : ranks) {
      outputs.push_back(rank.outputs[step]);
      gradients.push_back(rank.input_gradients[step]);
    }
    expect_close(torch::cat(outputs), alone.outputs[step], one, "output");
    expect_close(torch::cat(gradients), alone.input_gradients[step], one, "input gradient");
  }
  expect_close(total(ranks, &Outcome::weight_gradient), alone.weight_gradient, one, "weight");
  expect_close(total(ranks, &Outcome::bias_gradient), alone.bias_gradient, one, "bias");
  for (const Outcome& rank : ranks) {
    expect_close(rank.running_mean, alone.running_mean, one, "running mean");
    expect_close(rank.running_var, alone.running_var, one, "running variance");
    if (!alone.running_mean.defined()) continue;
    EXPECT_TRUE(rank.running_mean.equal(ranks[0].running_mean)) << one.name << ": other bits";
    EXPECT_TRUE(rank.running_var.equal(ranks[0].running_var)) << one.name << ": other bits";
    EXPECT_TRUE(rank.num_batches_tracked.equal(alone.num_batches_tracked)) << one.name;
  }
}

std::vector<Case> cases() {
  const BatchNormOptions plain(kChannels);
  const auto last = torch::MemoryFormat::ChannelsLast;
  return {
      {"2D, uneven", {5, 2, 4}, {}},
      {"2D, one sample each", {1, 1, 1}, {}},
      {"3D", {2, 3}, {7}},
      {"4D", {2, 3, 1, 2}, {4, 5}},
      {"5D", {2, 1}, {2, 3, 2}},
      {"channels last", {3, 2}, {4, 5}, plain, torch::kFloat64, last},
      {"one rank without samples", {3, 0, 2}, {2, 2}},
      {"one rank without samples, channels last", {0, 3}, {2, 2}, plain, torch::kFloat64, last},
      {"one sample on one rank", {0, 1}, {2, 2}},
      {"not affine", {3, 2}, {4}, BatchNormOptions(plain).affine(false)},
      {"no running statistics", {3, 2}, {4}, BatchNormOptions(plain).track_running_stats(false)},
      {"cumulative average", {3, 2}, {4}, BatchNormOptions(plain).momentum(std::nullopt)},
      {"momentum and eps", {3, 2}, {4}, BatchNormOptions(plain).momentum(0.3).eps(0.1)},
      {"f32", {4, 3, 5}, {6, 6}, plain, torch::kFloat32},
      {"f32, 2D", {4, 1}, {}, plain, torch::kFloat32},
      {"f32, channels last", {4, 3}, {6, 6}, plain, torch::kFloat32, last},
  };
}

class SyncBatchNormIsOneProcess : public ::testing::TestWithParam<int> {};

TEST_P(SyncBatchNormIsOneProcess, InOutputsGradientsAndStatistics) {
  std::vector<Case> mine;
  for (Case& one : cases()) {
    if (static_cast<int>(one.counts.size()) == GetParam()) mine.push_back(one);
  }
  ASSERT_FALSE(mine.empty());
  const auto ranks = on_ranks(GetParam(), [&](const ProcessGroupPtr& group) {
    std::vector<Outcome> outcomes;
    for (const Case& one : mine) {
      SyncBatchNorm norm(one.options, group);
      std::int64_t from = 0;
      for (Rank rank = 0; rank < group->rank(); ++rank) {
        from += one.counts[static_cast<std::size_t>(rank)];
      }
      const std::int64_t count = one.counts[static_cast<std::size_t>(group->rank())];
      outcomes.push_back(run(norm, one, from, from + count));
    }
    return outcomes;
  });
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<Outcome> outcomes;
    for (const auto& rank : ranks) outcomes.push_back(rank[i]);
    expect_equal_to_one_process(outcomes, mine[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         SyncBatchNormIsOneProcess,
                         ::testing::Values(2, 3, 4),
                         [](const auto& ranks) { return std::to_string(ranks.param) + "Ranks"; });

TEST(SyncBatchNormTest, FewerThanTwoValuesAreAnErrorOnEveryRankAndTheGroupStaysUsable) {
  const auto errors = on_ranks(2, [](const ProcessGroupPtr& group) {
    SyncBatchNorm norm(BatchNormOptions(kChannels), group);
    const std::string text = thrown_text([&] {
      norm->forward(torch::ones({group->rank(), kChannels}));
    });
    EXPECT_TRUE(norm->running_mean.equal(torch::zeros({kChannels})));
    EXPECT_EQ(norm->num_batches_tracked.item<int>(), 0) << "a rejected batch was counted";
    EXPECT_EQ(norm->forward(torch::randn({2, kChannels})).size(0), 2);
    return text;
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("usage: the batches of all ranks together have 1 values"));
  }
}

TEST(SyncBatchNormTest, EvaluationAndAWrongShapeDoNotCommunicate) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    SyncBatchNorm norm(BatchNormOptions(kChannels), group);
    torch::nn::BatchNorm2d plain(kChannels);
    if (group->rank() == 1) return 0;
    EXPECT_THAT(thrown_text([&] {
                  norm->forward(torch::ones({2, 5}));
                }),
                HasSubstr("batch normalization of 3 channels got an input of shape [2, 5]"));
    norm->eval();
    plain->eval();
    const Tensor input = torch::randn({2, kChannels, 2, 2});
    EXPECT_TRUE(norm->forward(input).equal(plain->forward(input)));
    SyncBatchNorm untracked(BatchNormOptions(kChannels).track_running_stats(false), group);
    torch::nn::BatchNorm2d untracked_plain(
        torch::nn::BatchNorm2dOptions(kChannels).track_running_stats(false));
    untracked->eval();
    untracked_plain->eval();
    EXPECT_TRUE(untracked->forward(input).equal(untracked_plain->forward(input)));
    return 0;
  });
}

TEST(SyncBatchNormTest, WithoutAGroupOrOtherRanksItIsBatchNormToTheBit) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    for (const ProcessGroupPtr& ranks : {group, ProcessGroupPtr()}) {
      const Case one = {"alone", {4}, {3, 3}, BatchNormOptions(kChannels), torch::kFloat32};
      SyncBatchNorm norm(one.options, ranks);
      const Outcome mine = run(norm, one, 0, 4);
      const Outcome alone = run_alone(one);
      EXPECT_TRUE(mine.outputs[1].equal(alone.outputs[1]));
      EXPECT_TRUE(mine.input_gradients[1].equal(alone.input_gradients[1]));
      EXPECT_TRUE(mine.running_var.equal(alone.running_var));
      EXPECT_TRUE(mine.num_batches_tracked.equal(alone.num_batches_tracked));
    }
    return 0;
  });
}

TEST(SyncBatchNormTest, SixteenBitInputsAreComputedInF32) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
      torch::manual_seed(static_cast<std::uint64_t>(group->rank()));
      const Tensor input = (torch::randn({4, kChannels, 5}) + 3).to(type);
      SyncBatchNorm low(BatchNormOptions(kChannels), group),
          high(BatchNormOptions(kChannels), group);
      const Tensor low_input = input.detach().requires_grad_();
      const Tensor high_input = input.to(torch::kFloat32).requires_grad_();
      const Tensor low_output = low->forward(low_input);
      const Tensor high_output = high->forward(high_input);
      const Tensor gradient = torch::randn_like(high_output).to(type);
      low_output.backward(gradient);
      high_output.backward(gradient.to(torch::kFloat32));
      EXPECT_EQ(low_output.scalar_type(), type);
      EXPECT_TRUE(low_output.equal(high_output.to(type)));
      EXPECT_TRUE(low_input.grad().equal(high_input.grad().to(type)));
      EXPECT_TRUE(low->weight.grad().equal(high->weight.grad()));
      EXPECT_TRUE(low->running_var.equal(high->running_var));
    }
    return 0;
  });
}

TEST(SyncBatchNormTest, TheKeysAndFilesAreThoseOfBatchNorm) {
  torch::nn::BatchNorm2d plain(kChannels);
  {
    const torch::NoGradGuard no_grad;
    plain->weight.fill_(3);
    plain->running_mean.fill_(4);
    plain->num_batches_tracked.fill_(5);
  }
  std::stringstream file;
  torch::save(plain, file);
  SyncBatchNorm norm{kChannels};
  torch::load(norm, file);
  EXPECT_EQ(norm->named_parameters().keys(), plain->named_parameters().keys());
  EXPECT_EQ(norm->named_buffers().keys(), plain->named_buffers().keys());
  EXPECT_TRUE(norm->weight.equal(plain->weight));
  EXPECT_TRUE(norm->running_mean.equal(plain->running_mean));
  EXPECT_EQ(norm->num_batches_tracked.item<int>(), 5);
}

TEST(SyncBatchNormTest, ACloneHasItsOwnTensorsAndTheSameValues) {
  SyncBatchNorm norm{kChannels};
  norm->weight.set_requires_grad(false);
  norm->running_mean.fill_(2);
  const auto copy = std::dynamic_pointer_cast<SyncBatchNormImpl>(norm->clone());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->running_mean.equal(norm->running_mean));
  EXPECT_FALSE(copy->weight.requires_grad());
  copy->running_mean.fill_(3);
  EXPECT_EQ(norm->running_mean[0].item<float>(), 2);
  EXPECT_TRUE(copy->named_buffers()["running_mean"].is_same(copy->running_mean));
}

TEST(SyncBatchNormTest, AnInputWithoutGradientNeedsNoCommunicationInBackward) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    SyncBatchNorm norm(BatchNormOptions(kChannels), group);
    const Tensor output = norm->forward(torch::randn({4, kChannels}));
    if (group->rank() == 0) output.sum().backward();
    return 0;
  });
}

TEST(SyncBatchNormTest, ASecondDerivativeIsAnErrorThatSaysSo) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    SyncBatchNorm norm(BatchNormOptions(kChannels), group);
    const Tensor input = torch::randn({4, kChannels}).requires_grad_();
    const Tensor loss = norm->forward(input).pow(2).sum();
    EXPECT_THAT(thrown_text([&] {
                  torch::autograd::grad({loss}, {input}, {}, std::nullopt, /*create_graph=*/true);
                }),
                HasSubstr("unsupported: SyncBatchNorm has no second derivative"));
    return 0;
  });
}

/// A convolution, a normalization and a linear layer.
template <class Norm>
struct NormNet : torch::nn::Module {
  NormNet() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("out", out);
    to(torch::kFloat64);
  }
  Tensor forward(const Tensor& x) { return out(torch::relu(norm(conv(x))).flatten(1)); }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, kChannels, 3)};
  Norm norm{kChannels};
  torch::nn::Linear out{kChannels * 16, 2};
};

/// Trains on rows of the batches; `model` is the net or its DistributedDataParallel.
template <class Net, class Model>
std::vector<Tensor> trained(Net& net, Model& model, std::int64_t from, std::int64_t to) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto random = at::detail::createCPUGenerator(5);
  for (int step = 0; step < 10; ++step) {
    const Tensor x = torch::randn({6, 1, 6, 6}, random, torch::kFloat64).slice(0, from, to);
    const Tensor y = torch::randn({6, 2}, random, torch::kFloat64).slice(0, from, to);
    optimizer.zero_grad();
    torch::mse_loss(model.forward(x), y).backward();
    optimizer.step();
  }
  std::vector<Tensor> state = net.parameters();
  for (const Tensor& buffer : net.buffers()) state.push_back(buffer);
  return state;
}

/// The state after training in one process, and on each rank of a group. Rank r has the rows from
/// first_rows[r] to first_rows[r + 1].
struct Trained {
  std::vector<Tensor> alone;
  std::vector<std::vector<Tensor>> ranks;
};

Trained trained_on(const std::vector<std::int64_t>& first_rows,
                   Average average,
                   LossWeights weights) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  NormNet<torch::nn::BatchNorm2d> alone;
  const int ranks = static_cast<int>(first_rows.size()) - 1;
  std::vector<std::shared_ptr<NormNet<SyncBatchNorm>>> nets;
  for (int rank = 0; rank < ranks; ++rank) {
    torch::manual_seed(1);
    nets.push_back(std::make_shared<NormNet<SyncBatchNorm>>());
  }
  return {trained(alone, alone, 0, 6), on_ranks(ranks, [&](const ProcessGroupPtr& group) {
            const auto rank = static_cast<std::size_t>(group->rank());
            const auto& net = nets[rank];
            net->norm->set_group(group);
            net->norm->set_loss_weights(weights);
            DistributedDataParallel model(
                net, group, {.bucket_cap = 100_B, .first_bucket_cap = 100_B, .average = average});
            return trained(*net, model, first_rows[rank], first_rows[rank + 1]);
          })};
}

bool are_near(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  return std::ranges::equal(found, expected, [](const Tensor& one, const Tensor& other) {
    return one.allclose(other, 1e-8, 1e-9);
  });
}

TEST(SyncBatchNormTest, TrainingWithDistributedDataParallelIsTrainingOfOneProcess) {
  for (const auto& first_rows : std::vector<std::vector<std::int64_t>>{{0, 3, 6}, {0, 2, 4, 6}}) {
    const Trained all = trained_on(first_rows, Average::kMean, LossWeights::kEqual);
    for (const auto& rank : all.ranks) EXPECT_TRUE(are_near(rank, all.alone));
  }
}

TEST(SyncBatchNormTest, WithAnAverageBySamplesTheWeightsOfTheLossesAreThoseOfTheAverage) {
  for (const auto& first_rows :
       std::vector<std::vector<std::int64_t>>{{0, 1, 6}, {0, 4, 4, 6}, {0, 3, 6}}) {
    const Trained all = trained_on(first_rows, Average::kBySamples, LossWeights::kBySamples);
    for (const auto& rank : all.ranks) EXPECT_TRUE(are_near(rank, all.alone));
  }
  const Trained equal = trained_on({0, 1, 6}, Average::kBySamples, LossWeights::kEqual);
  EXPECT_FALSE(are_near(equal.ranks[0], equal.alone));
}

}  // namespace
}  // namespace peal::train
