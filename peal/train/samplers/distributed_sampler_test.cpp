#include "peal/train/samplers/distributed_sampler.h"

#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

std::vector<std::size_t> take_all(DistributedSampler& sampler, std::size_t batch_size) {
  std::vector<std::size_t> taken;
  while (const auto batch = sampler.next(batch_size)) {
    taken.insert(taken.end(), batch->begin(), batch->end());
  }
  return taken;
}

TEST(DistributedSamplerTest, RanksTogetherTakeEverySampleForAnyBatchSize) {
  for (std::size_t size = 0; size <= 50; size += 7) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      std::map<std::size_t, int> counts;
      std::size_t total = 0;
      for (Rank rank = 0; rank < ranks; ++rank) {
        DistributedSampler sampler(size, rank, ranks);
        EXPECT_EQ(sampler.remaining(), (size + ranks - 1) / ranks);
        for (const std::size_t sample : take_all(sampler, 3)) counts[sample] += 1, ++total;
        EXPECT_EQ(sampler.position(), size);
        EXPECT_EQ(sampler.remaining(), 0u);
      }
      EXPECT_EQ(counts.size(), size) << ranks << " ranks";
      EXPECT_EQ(total, (size + ranks - 1) / ranks * ranks);
    }
  }
}

TEST(DistributedSamplerTest, EpochsDifferAndARepeatedEpochIsTheSame) {
  DistributedSampler sampler(100, 1, 2);
  const auto first = take_all(sampler, 10);
  sampler.set_epoch(1);
  const auto second = take_all(sampler, 10);
  sampler.set_epoch(0);
  EXPECT_NE(first, second);
  EXPECT_EQ(take_all(sampler, 10), first);
  sampler.reset();
  EXPECT_EQ(take_all(sampler, 7), second) << "reset begins the next epoch";
}

TEST(DistributedSamplerTest, RanksTakeTheSequentialOrderInTurn) {
  DistributedSampler sampler(7, 1, 3, {.order = SamplerOptions::Order::kSequential});
  EXPECT_THAT(take_all(sampler, 2), ::testing::ElementsAre(1, 4, 0));
}

TEST(DistributedSamplerTest, ResetTakesANewSize) {
  DistributedSampler sampler(7, 0, 2, {.order = SamplerOptions::Order::kSequential});
  sampler.reset(4);
  EXPECT_THAT(take_all(sampler, 2), ::testing::ElementsAre(0, 2));
}

TEST(DistributedSamplerTest, AnotherNumberOfRanksCanContinueAnEpoch) {
  std::map<std::size_t, int> counts;
  std::size_t position = 0;
  for (Rank rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(60, rank, 3);
    sampler.set_epoch(4);
    const auto batch = sampler.next(6);
    for (const std::size_t sample : batch.value()) counts[sample] += 1;
    position = sampler.position();
  }
  EXPECT_EQ(position, 18u);
  for (Rank rank = 0; rank < 2; ++rank) {
    DistributedSampler sampler(60, rank, 2);
    sampler.set_epoch(4);
    sampler.seek(position);
    sampler.reset();  // a data loader begins with this call
    for (const std::size_t sample : take_all(sampler, 5)) counts[sample] += 1;
  }
  EXPECT_EQ(counts.size(), 60u);
  for (const auto& [sample, count] : counts) EXPECT_EQ(count, 1) << sample;
}

TEST(DistributedSamplerTest, SavingAndLoadingKeepEpochAndPosition) {
  DistributedSampler sampler(40, 0, 2);
  sampler.set_epoch(3);
  sampler.next(5);
  torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream file;
  out.save_to(file);
  torch::serialize::InputArchive in;
  in.load_from(file);

  DistributedSampler other(40, 0, 2);
  other.load(in);
  EXPECT_EQ(other.epoch(), 3u);
  EXPECT_EQ(other.position(), 10u);
  EXPECT_EQ(take_all(other, 4), take_all(sampler, 4));

  DistributedSampler of_other_data(41, 0, 2), of_other_order(40, 0, 2, {.seed = 1});
  EXPECT_THROW(of_other_data.load(in), Error);
  EXPECT_THROW(of_other_order.load(in), Error);
  EXPECT_EQ(of_other_data.epoch(), 0u);
}

TEST(DistributedSamplerTest, AnArchiveOfEpochAndPositionAloneCanBeLoaded) {
  torch::serialize::OutputArchive out;
  out.write("epoch", torch::tensor(2, torch::kInt64), /*is_buffer=*/true);
  out.write("position", torch::tensor(6, torch::kInt64), /*is_buffer=*/true);
  std::stringstream file;
  out.save_to(file);
  torch::serialize::InputArchive in;
  in.load_from(file);
  DistributedSampler sampler(40, 0, 2);
  sampler.load(in);
  EXPECT_EQ(sampler.epoch(), 2u);
  EXPECT_EQ(sampler.position(), 6u);
}

TEST(DistributedSamplerTest, EveryLoopOverALoaderIsTheNextEpoch) {
  const auto dataset = torch::data::datasets::TensorDataset(torch::arange(20))
                           .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  for (const std::size_t workers : {0, 2}) {
    DistributedSampler sampler(20, 1, 2);
    const auto loader = torch::data::make_data_loader(
        dataset, sampler, torch::data::DataLoaderOptions(4).workers(workers));
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::size_t> taken;
      for (const auto& batch : *loader) {
        for (std::int64_t i = 0; i < batch.data.numel(); ++i) {
          taken.push_back(static_cast<std::size_t>(batch.data[i].item<std::int64_t>()));
        }
      }
      EXPECT_EQ(sampler.epoch(), epoch);
      DistributedSampler expected(20, 1, 2);
      expected.set_epoch(epoch);
      EXPECT_EQ(taken, take_all(expected, 4));
    }
  }
}

TEST(DistributedSamplerTest, ALoopAfterLoadingContinuesAndTheOneAfterItIsTheNextEpoch) {
  const auto dataset = torch::data::datasets::TensorDataset(torch::arange(20))
                           .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  DistributedSampler sampler(20, 0, 2);
  const auto loader = torch::data::make_data_loader(dataset, sampler, 4);
  sampler.set_epoch(5);
  sampler.seek(12);
  std::vector<std::int64_t> sizes;
  for (int loop = 0; loop < 2; ++loop) {
    for (const auto& batch : *loader) sizes.push_back(batch.data.numel());
  }
  EXPECT_THAT(sizes, ::testing::ElementsAre(4, 4, 4, 2));
  EXPECT_EQ(sampler.epoch(), 6u);
}

TEST(DistributedSamplerTest, UnevenSharesLoseAndRepeatNoSampleAndSayTheirBatches) {
  std::map<std::size_t, int> counts;
  std::vector<std::size_t> batches;
  for (Rank rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(13, rank, 3, {.remainder = data::Remainder::kUneven});
    batches.push_back(sampler.batches(4));
    for (const std::size_t sample : take_all(sampler, 4)) counts[sample] += 1;
    EXPECT_EQ(sampler.batches(4), 0u);
  }
  EXPECT_THAT(batches, ::testing::ElementsAre(2, 1, 1));
  EXPECT_EQ(counts.size(), 13u);
  for (const auto& [sample, count] : counts) EXPECT_EQ(count, 1) << sample;
}

TEST(DistributedSamplerTest, AnOrderOfYourOwnIsSharedOut) {
  EpochSampler sampler({.size = 4, .rank = 1, .ranks = 2, .order = [](std::size_t size, auto...) {
                          std::vector<std::size_t> order;
                          for (std::size_t i = 0; i < size; ++i) order.push_back(100 - i);
                          return order;
                        }});
  EXPECT_THAT(sampler.next(4).value(), ::testing::ElementsAre(99, 97));
}

TEST(DistributedSamplerTest, ACopyControlsTheSamplerInADataLoader) {
  const auto dataset = torch::data::datasets::TensorDataset(torch::rand({20, 1}))
                           .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  DistributedSampler sampler(20, 0, 2);
  const auto loader = torch::data::make_data_loader(dataset, sampler, 4);
  std::vector<torch::Tensor> epochs;
  for (const std::uint64_t epoch : {0, 1, 0}) {
    sampler.set_epoch(epoch);
    std::vector<torch::Tensor> batches;
    for (const auto& batch : *loader) {
      EXPECT_EQ(batch.data.size(1), 1);
      batches.push_back(batch.data);
    }
    epochs.push_back(torch::cat(batches));
    EXPECT_EQ(epochs.back().size(0), 10);
  }
  EXPECT_TRUE(epochs[0].equal(epochs[2]));
  EXPECT_FALSE(epochs[0].equal(epochs[1]));
}

TEST(DistributedSamplerTest, AnInvalidRankAndAPositionBeyondTheEndAreUsageErrors) {
  EXPECT_THROW(DistributedSampler(10, 2, 2), Error);
  EXPECT_THROW(DistributedSampler(10, -1, 2), Error);
  DistributedSampler sampler(10, 0, 2);
  EXPECT_THROW(sampler.seek(11), Error);
}

}  // namespace
}  // namespace peal::train
