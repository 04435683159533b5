#include "peal/train/samplers/counted.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/samplers/distributed_sampler.h"

namespace peal::train {
namespace {

using data::Remainder;
using Indices = std::vector<std::size_t>;

/// A batch is the indices themselves. Fails to load a batch with the sample `bad`. Copies, one for
/// each worker, count their batches together.
class IndexDataset final
    : public torch::data::datasets::BatchDataset<IndexDataset, Indices, std::vector<std::size_t>> {
 public:
  explicit IndexDataset(std::size_t size, std::size_t bad = static_cast<std::size_t>(-1))
      : size_(size), bad_(bad) {}

  Indices get_batch(std::vector<std::size_t> indices) override {
    *loaded_ += 1;
    if (std::find(indices.begin(), indices.end(), bad_) != indices.end()) {
      throw std::runtime_error("a bad sample");
    }
    return indices;
  }
  std::optional<std::size_t> size() const override { return size_; }
  std::shared_ptr<const std::atomic<int>> loaded() const { return loaded_; }

 private:
  std::size_t size_, bad_;
  std::shared_ptr<std::atomic<int>> loaded_ = std::make_shared<std::atomic<int>>(0);
};

torch::data::DataLoaderOptions options_of(std::size_t batch_size, std::size_t workers) {
  return torch::data::DataLoaderOptions(batch_size).workers(workers);
}

constexpr std::size_t kSize = 57;

/// Adds the first `batches` batches of each of `ranks` ranks, from `position` on, and returns the
/// position after that.
std::size_t train_some(int ranks,
                       std::size_t position,
                       std::size_t batches,
                       std::size_t workers,
                       std::multiset<std::size_t>& used) {
  std::vector<std::size_t> positions;
  for (Rank rank = 0; rank < ranks; ++rank) {
    DistributedSampler sampler(kSize, rank, ranks, {.remainder = Remainder::kUneven});
    const auto loader =
        torch::data::make_data_loader(IndexDataset(kSize), sampler, options_of(3, workers));
    sampler.seek(position);
    std::size_t received = 0;
    for (const Indices& batch : counted(*loader, sampler)) {
      used.insert(batch.begin(), batch.end());
      if (++received == batches) break;
    }
    positions.push_back(sampler.position());
  }
  EXPECT_THAT(positions, ::testing::Each(positions[0]));
  return positions[0];
}

TEST(CountedTest, AnEpochLeftInTheMiddleContinuesOnOtherRanksWithoutALostOrRepeatedSample) {
  for (const std::size_t workers : {0, 1, 2, 3}) {
    for (const std::size_t batches : {1, 2, 5}) {
      std::multiset<std::size_t> used;
      const std::size_t cut = train_some(3, 0, batches, workers, used);
      EXPECT_EQ(cut, batches * 9) << "prefetched batches were counted";
      EXPECT_EQ(train_some(2, cut, kSize, workers, used), kSize);
      EXPECT_EQ(used.size(), kSize) << workers << " workers, " << batches << " batches";
      EXPECT_EQ(std::set(used.begin(), used.end()).size(), kSize);
    }
  }
}

TEST(CountedTest, TheCurrentBatchCountsInsideTheLoop) {
  for (const std::size_t workers : {0, 2}) {
    DistributedSampler sampler(20, 0, 2);
    const auto loader =
        torch::data::make_data_loader(IndexDataset(20), sampler, options_of(4, workers));
    std::vector<std::size_t> positions, remaining;
    for (const Indices& batch : counted(*loader, sampler)) {
      EXPECT_LE(batch.size(), 4u);
      positions.push_back(sampler.position());
      remaining.push_back(sampler.remaining());
    }
    EXPECT_THAT(positions, ::testing::ElementsAre(8, 16, 20));
    EXPECT_THAT(remaining, ::testing::ElementsAre(6, 2, 0));
  }
}

TEST(CountedTest, EveryLoopIsTheNextEpochAlsoAfterABreakOrAnException) {
  for (const std::size_t workers : {0, 1, 2}) {
    DistributedSampler sampler(kSize, 1, 2);
    const auto loader =
        torch::data::make_data_loader(IndexDataset(kSize), sampler, options_of(4, workers));
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      Indices taken;
      try {
        for (const Indices& batch : counted(*loader, sampler)) {
          EXPECT_EQ(sampler.epoch(), epoch);
          taken.insert(taken.end(), batch.begin(), batch.end());
          if (epoch % 3 == 1) break;
          if (epoch % 3 == 2) throw std::runtime_error("the loss is not finite");
        }
      } catch (const std::runtime_error&) {
      }
      DistributedSampler expected(kSize, 1, 2);
      expected.set_epoch(epoch);
      EXPECT_EQ(taken, expected.next(taken.size()));
      EXPECT_EQ(taken.size(), epoch % 3 == 0 ? 29u : 4u);
    }
  }
}

TEST(CountedTest, LeavingTheLoopLoadsNoMoreThanWasPrefetched) {
  DistributedSampler sampler(1000, 0, 1);
  const IndexDataset dataset(1000);
  const auto loader = torch::data::make_data_loader(dataset, sampler, options_of(1, 2).max_jobs(3));
  for (const Indices& batch : counted(*loader, sampler)) {
    EXPECT_EQ(batch.size(), 1u);
    break;
  }
  EXPECT_LE(*dataset.loaded(), 4);  // the received batch, and 3 prefetched
}

TEST(CountedTest, AnEpochIsContinuedInTheSameProgramBySeek) {
  DistributedSampler sampler(kSize, 0, 1);
  const auto loader = torch::data::make_data_loader(IndexDataset(kSize), sampler, options_of(5, 2));
  std::multiset<std::size_t> used;
  for (int part = 0; used.size() < kSize; ++part) {
    for (const Indices& batch : counted(*loader, sampler)) {
      used.insert(batch.begin(), batch.end());
      if (used.size() % 15 == 0) break;
    }
    EXPECT_EQ(sampler.epoch(), 0u);
    sampler.seek(sampler.position());
  }
  EXPECT_EQ(used.size(), kSize);
  EXPECT_EQ(std::set(used.begin(), used.end()).size(), kSize);
}

TEST(CountedTest, ADroppedShortBatchLeavesNothingOfTheEpoch) {
  DistributedSampler sampler(kSize, 0, 2);
  const auto loader =
      torch::data::make_data_loader(IndexDataset(kSize), sampler, options_of(4, 2).drop_last(true));
  std::size_t received = 0;
  for (const Indices& batch : counted(*loader, sampler)) received += batch.size();
  EXPECT_EQ(received, 28u);
  EXPECT_EQ(sampler.position(), kSize);
  for (const Indices& batch : counted(*loader, sampler)) received += batch.size();
  EXPECT_EQ(sampler.epoch(), 1u);
}

TEST(CountedTest, AnEmptyShareIsAnEmptyLoop) {
  DistributedSampler sampler(1, 1, 2, {.remainder = Remainder::kUneven});
  const auto loader = torch::data::make_data_loader(IndexDataset(1), sampler, options_of(4, 1));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (const Indices& batch : counted(*loader, sampler)) EXPECT_TRUE(batch.empty());
    EXPECT_EQ(sampler.epoch(), epoch);
    EXPECT_EQ(sampler.position(), 1u);
  }
}

TEST(CountedTest, AWorkersExceptionLeavesTheLoopAndTheLoaderCanBeginAgain) {
  for (const std::size_t workers : {1, 2}) {
    DistributedSampler sampler(
        kSize, 0, 1, {.order = SamplerOptions::Order::kSequential});  // sample 9 in batch 2
    const auto loader =
        torch::data::make_data_loader(IndexDataset(kSize, 9), sampler, options_of(4, workers));
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::size_t received = 0;
      EXPECT_THROW(
          {
            for (const Indices& batch : counted(*loader, sampler)) received += batch.size();
          },
          torch::data::WorkerException);
      EXPECT_EQ(received, 8u);
      EXPECT_EQ(sampler.position(), 8u) << "the bad batch counts, or good ones do not";
    }
  }
}

TEST(CountedTest, ALoopOverTheLoaderItselfCountsWhatTheLoaderTook) {
  DistributedSampler sampler(40, 0, 2);
  const auto loader = torch::data::make_data_loader(IndexDataset(40), sampler, options_of(4, 1));
  for (const Indices& batch : counted(*loader, sampler)) {
    EXPECT_EQ(batch.size(), 4u);
    break;
  }
  EXPECT_EQ(sampler.position(), 8u);
  std::size_t first = 0;
  for (const Indices& batch : *loader) {
    if (first == 0) first = sampler.position();
    EXPECT_EQ(batch.size(), 4u);
  }
  EXPECT_GT(first, 8u) << "two batches ahead";
  EXPECT_EQ(sampler.position(), 40u);
}

TEST(CountedTest, BatchesInAnyOrderAndAnotherLoadersSamplerAreErrors) {
  DistributedSampler sampler(40, 0, 2), other(40, 0, 2);
  const auto unordered = torch::data::make_data_loader(
      IndexDataset(40), sampler, options_of(4, 2).enforce_ordering(false));
  try {
    counted(*unordered, sampler);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  }
  const auto loader = torch::data::make_data_loader(IndexDataset(40), sampler, options_of(4, 2));
  EXPECT_THROW(
      {
        for (const Indices& batch : counted(*loader, other)) EXPECT_TRUE(batch.empty());
      },
      Error);
}

}  // namespace
}  // namespace peal::train
