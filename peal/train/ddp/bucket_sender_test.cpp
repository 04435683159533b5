#include "peal/train/ddp/bucket_sender.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/group/testing/idle_backend.h"

namespace peal::train {
namespace {

using peal::testing::Asked;
using peal::testing::IdleBackend;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A sender of two buckets, with one gradient of 16 and one of 32 elements.
class BucketSenderTest : public ::testing::Test {
 protected:
  void make(bool starts_early) {
    sender_.reset();
    buckets_.clear();
    auto backend = std::make_unique<IdleBackend>(2);
    backend_ = backend.get();
    group_ = std::make_unique<ProcessGroup>(std::move(backend), GroupOptions{});
    for (const std::int64_t elements : {16, 32}) {
      buckets_.emplace_back(
          *group_,
          buckets_.size(),
          DType::kF32,
          std::vector<GradientBucket::Parameter>{{"parameter", torch::zeros({elements})}});
    }
    sender_.emplace(*group_, options_);
    sender_->set_starts_early(starts_early);
    sender_->begin(buckets_);
  }

  void become_ready(std::size_t bucket) {
    sender_->add_ready(bucket);
    sender_->send_ready(buckets_);
  }

  std::vector<std::size_t> sent() const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (sender_->has_sent(i)) result.push_back(i);
    }
    return result;
  }

  /// The operations of buckets that were asked for.
  std::vector<std::size_t> asked() const {
    std::vector<std::size_t> result;
    for (const Asked& one : backend_->asked()) {
      if (one.size == Bytes(64)) result.push_back(0);
      if (one.size == Bytes(128)) result.push_back(1);
    }
    return result;
  }

  DataParallelOptions options_;
  IdleBackend* backend_ = nullptr;
  std::unique_ptr<ProcessGroup> group_;
  std::vector<GradientBucket> buckets_;
  std::optional<BucketSender> sender_;
};

TEST_F(BucketSenderTest, SendsInTheOrderOfTheBuckets) {
  make(true);
  become_ready(1);
  EXPECT_THAT(asked(), IsEmpty());
  become_ready(0);
  EXPECT_THAT(asked(), ElementsAre(0, 1));
}

TEST_F(BucketSenderTest, StartsABucketAsSoonAsItIsReady) {
  make(true);
  become_ready(0);
  EXPECT_THAT(asked(), ElementsAre(0));
  EXPECT_THAT(sent(), ElementsAre(0));
}

TEST_F(BucketSenderTest, WithoutAnEarlyStartABucketWaitsForTheEndOfBackward) {
  make(false);
  become_ready(0);
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_THAT(sent(), ElementsAre(0)) << "a program behaves alike on all machines";
}

TEST_F(BucketSenderTest, FinishRunsTheOperationsThatHaveNotStarted) {
  for (const bool starts_early : {true, false}) {
    make(starts_early);
    become_ready(0);
    sender_->add_ready(1);
    PassStatus status(2, 2);
    EXPECT_EQ(sender_->finish(buckets_, status), nullptr);
    EXPECT_THAT(asked(), ElementsAre(0, 1));
    EXPECT_EQ(backend_->asked().back(),
              (Asked{Operation::kAllReduce, Bytes(8) * std::ssize(status.words())}));
    EXPECT_FALSE(sender_->has_sent_any());
  }
}

}  // namespace
}  // namespace peal::train
