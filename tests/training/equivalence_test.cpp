// N ranks train as one process that has the batches of all ranks in each step: for each optimizer,
// with each feature alone, all pairs of features, and all together. The one process uses only
// LibTorch.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/ddp/distributed_data_parallel.h"
#include "peal/train/ddp/uneven.h"
#include "peal/train/nn/convert_sync_batch_norm.h"
#include "peal/train/optim/clip_grad_norm.h"
#include "peal/train/optim/optimizer_state.h"
#include "peal/train/optim/zero_redundancy_optimizer.h"
#include "peal/train/testing/ranks.h"

#include "tests/training/feature_data.h"
#include "tests/training/feature_net.h"
#include "tests/training/features.h"

namespace peal::train {
namespace {

using testing::Batch;
using testing::feature_net;
using testing::FeatureData;
using testing::FeatureNet;
using testing::Features;
using testing::kSteps;
using testing::kStepsInEpoch;
using testing::Pass;
using torch::Tensor;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;

constexpr double kMaximalNorm = 0.2;  // most gradients are larger

enum class Algorithm : unsigned char { kSgd, kAdam, kAdamW };

struct Case {
  Algorithm algorithm;
  Features features;
  int ranks;
  torch::ScalarType type;
};

// ---- optimizers ---------------------------------------------------------------------------------

/// Each parameter once. A tied parameter is in the list twice, and LibTorch's optimizers would
/// update it twice.
std::vector<Tensor> once(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> each;
  for (const Tensor& parameter : parameters) {
    const auto is_same = [&](const Tensor& other) { return other.is_same(parameter); };
    if (std::ranges::none_of(each, is_same)) each.push_back(parameter);
  }
  return each;
}

/// For one process if `group` is null.
template <class Optimizer, class Options>
OptimizerPtr optimizer_with(const Options& options,
                            const Features& features,
                            const std::shared_ptr<FeatureNet>& net,
                            const ProcessGroupPtr& group) {
  if (group && features.zero) {
    return std::make_unique<ZeroRedundancyOptimizer<Optimizer>>(group, net, options);
  }
  return std::make_unique<Optimizer>(once(net->parameters()), options);
}

OptimizerPtr make_optimizer(const Case& one,
                            const std::shared_ptr<FeatureNet>& net,
                            const ProcessGroupPtr& group) {
  switch (one.algorithm) {
    case Algorithm::kSgd:
      return optimizer_with<torch::optim::SGD>(
          torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01),
          one.features,
          net,
          group);
    case Algorithm::kAdam:
      return optimizer_with<torch::optim::Adam>(
          torch::optim::AdamOptions(0.01).weight_decay(0.01), one.features, net, group);
    case Algorithm::kAdamW:
      return optimizer_with<torch::optim::AdamW>(
          torch::optim::AdamWOptions(0.01).weight_decay(0.01), one.features, net, group);
  }
  return nullptr;
}

OptimizerState state_of(torch::optim::Optimizer& optimizer, const FeatureNet& net) {
  auto* const sharded = dynamic_cast<ShardedOptimizer*>(&optimizer);
  if (sharded != nullptr) return sharded->gather_state();
  return read_optimizer_state(optimizer, net.named_parameters());
}

// ---- training -----------------------------------------------------------------------------------

/// The tensors that are defined, one after the other, as f64.
Tensor joined(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> flat = {torch::empty({0}, torch::kFloat64)};
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) flat.push_back(tensor.detach().to(torch::kFloat64).flatten());
  }
  return torch::cat(flat);
}

/// What one process or one rank has computed.
struct Outcome {
  std::vector<double> losses;     // of each step, summed over the samples
  std::vector<Tensor> gradients;  // of each step; with clipping before and after it
  Tensor parameters, buffers;
  OptimizerState optimizer;
};

using Clip = std::function<double(const std::vector<Tensor>&)>;

/// The part of training that is the same in one process and on a rank.
class Steps {
 public:
  /// Does not clip if `clip` is null.
  Steps(FeatureNet& net, OptimizerPtr optimizer, Clip clip)
      : net_(net), optimizer_(std::move(optimizer)), clip_(std::move(clip)) {}

  void begin() { optimizer_->zero_grad(); }

  void add_loss(const Tensor& mean, const Batch& batch) {
    const auto samples = static_cast<double>(batch.inputs.size(0));
    if (samples > 0) loss_ += mean.item<double>() * samples;
  }

  void end() {
    std::vector<Tensor> gradients = {gradient()};
    if (clip_) {
      clip_(net_.parameters());
      gradients.push_back(gradient());
    }
    outcome_.gradients.push_back(torch::cat(gradients));
    outcome_.losses.push_back(std::exchange(loss_, 0));
    optimizer_->step();
  }

  Outcome outcome() {
    outcome_.parameters = joined(net_.parameters());
    outcome_.buffers = joined(net_.buffers());
    outcome_.optimizer = state_of(*optimizer_, net_);
    return outcome_;
  }

 private:
  Tensor gradient() const {
    std::vector<Tensor> all;
    for (const Tensor& parameter : net_.parameters()) all.push_back(parameter.grad());
    return joined(all);
  }

  FeatureNet& net_;
  OptimizerPtr optimizer_;
  Clip clip_;
  double loss_ = 0;
  Outcome outcome_;
};

double clip_by_torch(const std::vector<Tensor>& parameters) {
  return torch::nn::utils::clip_grad_norm_(once(parameters), kMaximalNorm);
}

double clip_by_peal(const std::vector<Tensor>& parameters) {
  return clip_grad_norm_(parameters, kMaximalNorm);
}

Outcome train_alone(const Case& one, const FeatureData& data) {
  const auto net = feature_net(one.features, one.type);
  Steps steps(
      *net, make_optimizer(one, net, nullptr), one.features.clipping ? clip_by_torch : Clip());
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<Batch> batches = data.of_all_ranks(step);
    double samples = 0;
    for (const Batch& batch : batches) samples += static_cast<double>(batch.inputs.size(0));
    steps.begin();
    for (const Batch& batch : batches) {
      const Tensor loss =
          torch::mse_loss(net->forward(batch.inputs, batch.optional), batch.targets);
      (loss * (static_cast<double>(batch.inputs.size(0)) / samples)).backward();
      steps.add_loss(loss, batch);
    }
    steps.end();
  }
  return steps.outcome();
}

void synchronize_batch_norm(const Features& features,
                            FeatureNet& net,
                            const ProcessGroupPtr& group) {
  // Ranks that reach different parameters send their buckets in another order relative to the
  // operations of the norm.
  const ProcessGroupPtr own = features.unused ? group->split(0) : group;
  convert_sync_batch_norm(
      net, own, features.uneven_data ? LossWeights::kBySamples : LossWeights::kEqual);
}

Outcome train_rank(const Case& one,
                   const FeatureData& data,
                   const std::shared_ptr<FeatureNet>& net,
                   const ProcessGroupPtr& group) {
  const Features& features = one.features;
  if (features.sync_batch_norm) synchronize_batch_norm(features, *net, group);
  DataParallelOptions options{.bucket_cap = 100_B, .first_bucket_cap = 100_B};
  if (features.uneven_data) options.average = Average::kBySamples;
  if (features.static_graph) options.graph = Graph::kStatic;
  DistributedDataParallel model(net, group, options);
  Steps steps(*net, make_optimizer(one, net, group), features.clipping ? clip_by_peal : Clip());
  const auto run = [&](const Pass& pass) {
    if (pass.begins_step) steps.begin();
    std::optional<NoSync> no_sync;
    if (!pass.ends_step) no_sync.emplace(model.reducer());
    const Batch& batch = pass.batch;
    const Tensor loss = torch::mse_loss(model.forward(batch.inputs, batch.optional), batch.targets);
    (features.uneven_data ? loss : loss / data.passes()).backward();
    steps.add_loss(loss, batch);
    if (pass.ends_step) steps.end();
  };
  for (int epoch = 0; epoch < kSteps / kStepsInEpoch; ++epoch) {
    const std::vector<Pass> passes = data.of_rank(group->rank(), epoch);
    if (features.uneven_data) {
      for (const Pass& pass : uneven(passes, model, [&] { steps.end(); })) run(pass);
    } else {
      for (const Pass& pass : passes) run(pass);
    }
  }
  return steps.outcome();
}

// ---- comparison ---------------------------------------------------------------------------------

/// The largest difference, relative to the largest expected number.
double difference(const Tensor& actual, const Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (expected.numel() == 0) return 0;
  return ((actual - expected).abs().max() / expected.abs().max()).item<double>();
}

/// The largest difference of each kind: "gradients", "parameters", ...
using Differences = std::map<std::string, double>;

void add(Differences& all, const std::string& kind, double difference) {
  double& largest = all[kind];
  if (difference > largest || std::isnan(difference)) largest = difference;
}

void compare_states(const OptimizerState& actual,
                    const OptimizerState& expected,
                    Differences& all) {
  EXPECT_EQ(actual.algorithm, expected.algorithm);
  ASSERT_EQ(actual.groups.size(), expected.groups.size());
  EXPECT_EQ(actual.groups[0].options, expected.groups[0].options);
  EXPECT_EQ(actual.groups[0].parameters, expected.groups[0].parameters);
  EXPECT_EQ(actual.parameters.size(), expected.parameters.size());
  std::map<std::string, std::vector<Tensor>> actual_fields, expected_fields;
  for (const auto& [name, fields] : expected.parameters) {
    ASSERT_TRUE(actual.parameters.contains(name)) << name;
    for (const auto& [field, value] : fields) expected_fields[field].push_back(value);
    for (const auto& [field, value] : actual.parameters.at(name)) {
      actual_fields[field].push_back(value);
    }
  }
  ASSERT_FALSE(expected_fields.empty());
  for (const auto& [field, values] : expected_fields) {
    add(all, "state", difference(joined(actual_fields[field]), joined(values)));
  }
}

Differences compare(const std::vector<Outcome>& ranks, const Outcome& alone) {
  Differences all;
  for (std::size_t step = 0; step < kSteps; ++step) {
    double loss = 0;
    for (const Outcome& rank : ranks) {
      EXPECT_TRUE(rank.gradients.at(step).equal(ranks[0].gradients[step]))
          << "gradients differ between ranks in step " << step;
      loss += rank.losses.at(step);
    }
    add(all, "losses", std::abs(loss / alone.losses[step] - 1));
    add(all, "gradients", difference(ranks[0].gradients[step], alone.gradients[step]));
  }
  for (const Outcome& rank : ranks) {
    EXPECT_EQ(rank.gradients.size(), std::size_t{kSteps});
    EXPECT_TRUE(rank.parameters.equal(ranks[0].parameters)) << "parameters differ between ranks";
    add(all, "parameters", difference(rank.parameters, alone.parameters));
    add(all, "buffers", difference(rank.buffers, alone.buffers));
    compare_states(rank.optimizer, alone.optimizer, all);
  }
  return all;
}

// ---- the tests ----------------------------------------------------------------------------------

class Equivalence : public ::testing::TestWithParam<std::tuple<Algorithm, Features, int>> {
 protected:
  void expect_equal_training(torch::ScalarType type, double tolerance) {
    const auto& [algorithm, features, count] = GetParam();
    const Case one{algorithm, features, count, type};
    const FeatureData data(features, count, type);
    std::vector<std::shared_ptr<FeatureNet>> nets;
    for (int rank = 0; rank < count; ++rank) nets.push_back(feature_net(features, type));
    const auto ranks = testing::on_ranks(count, [&](const ProcessGroupPtr& group) {
      return train_rank(one, data, nets[static_cast<std::size_t>(group->rank())], group);
    });
    for (const auto& [kind, largest] : compare(ranks, train_alone(one, data))) {
      EXPECT_LE(largest, tolerance) << kind << " in " << type;
      RecordProperty(c10::str(kind, "_", type), c10::str(largest));
    }
  }
};

TEST_P(Equivalence, RanksTrainAsOneProcess) {
  expect_equal_training(torch::kFloat64, 1e-9);
  expect_equal_training(torch::kFloat32, 1e-4);
}

std::string case_name(const ::testing::TestParamInfo<Equivalence::ParamType>& info) {
  const auto& [algorithm, features, ranks] = info.param;
  const char* const names[] = {"Sgd", "Adam", "AdamW"};
  return c10::str(names[static_cast<int>(algorithm)], "_", name_of(features), "_", ranks, "Ranks");
}

INSTANTIATE_TEST_SUITE_P(
    Features,
    Equivalence,
    ::testing::Combine(::testing::Values(Algorithm::kSgd, Algorithm::kAdam, Algorithm::kAdamW),
                       ::testing::ValuesIn(testing::combinations()),
                       ::testing::Values(2, 3)),
    case_name);

}  // namespace
}  // namespace peal::train
