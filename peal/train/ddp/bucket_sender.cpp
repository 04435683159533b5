#include "peal/train/ddp/bucket_sender.h"

#include <future>

namespace peal::train {

// Does not call Work::wait, which may start other operations.
BucketSender::~BucketSender() {
  for (const WorkPtr& work : works_) {
    std::promise<void> ended;
    work->when_completed([&ended] { ended.set_value(); });
    ended.get_future().wait();
  }
}

void BucketSender::begin(const std::vector<GradientBucket>& buckets) {
  sent_ = started_ = 0;
  missing_.clear();
  for (const GradientBucket& bucket : buckets) missing_.push_back(bucket.size());
}

void BucketSender::send_ready(const std::vector<GradientBucket>& buckets) {
  while (sent_ < buckets.size() && missing_[sent_] == 0) ++sent_;
  if (!starts_early_ && options_.hook == nullptr) return;
  for (; started_ < sent_; ++started_) {
    const GradientBucket& bucket = buckets[started_];
    works_.push_back(options_.hook
                         ? options_.hook->start(group_, bucket.contents(), options_.timeout)
                         : group_.all_reduce_async(bucket.memory(), average()));
  }
}

std::exception_ptr BucketSender::finish(const std::vector<GradientBucket>& buckets,
                                        PassStatus& status) {
  if (options_.hook) send_ready(buckets);
  const std::size_t started = started_;
  std::exception_ptr first = wait_for_all();
  const auto run = [&](const auto& operation) {
    try {
      operation();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  for (std::size_t i = started; i < buckets.size(); ++i) {
    run([&] { group_.all_reduce(buckets[i].memory(), average()); });
  }
  run([&] { group_.all_reduce(status.words(), {.timeout = options_.timeout}); });
  return first;
}

std::exception_ptr BucketSender::wait_for_all() {
  sent_ = started_ = 0;
  std::exception_ptr first;
  for (const WorkPtr& work : works_) {
    try {
      if (options_.wait) {
        options_.wait(*work);
      } else {
        work->wait();
      }
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  works_.clear();
  return first;
}

ReduceOptions BucketSender::average() const {
  const ReduceOp op = options_.average == Average::kMean ? ReduceOp::kAvg : ReduceOp::kSum;
  return {.op = op, .timeout = options_.timeout};
}

}  // namespace peal::train
