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
  missing_.clear();
  for (const GradientBucket& bucket : buckets) missing_.push_back(bucket.size());
}

void BucketSender::send_ready(const std::vector<GradientBucket>& buckets) {
  const ReduceOp op = options_.average == Average::kMean ? ReduceOp::kAvg : ReduceOp::kSum;
  for (; sent_ < buckets.size() && missing_[sent_] == 0; ++sent_) {
    const GradientBucket& bucket = buckets[sent_];
    works_.push_back(
        options_.hook
            ? options_.hook->start(group_, bucket.contents(), options_.timeout)
            : group_.all_reduce_async(bucket.memory(), {.op = op, .timeout = options_.timeout}));
  }
}

void BucketSender::send(PassStatus& status) {
  works_.push_back(group_.all_reduce_async(status.words(), {.timeout = options_.timeout}));
}

std::exception_ptr BucketSender::wait_for_all() {
  sent_ = 0;
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

}  // namespace peal::train
