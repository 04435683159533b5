// Sends the buckets of a pass in their order, and waits for them. Used by GradientReducer.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "peal/group/process_group.h"
#include "peal/train/ddp/data_parallel_options.h"
#include "peal/train/ddp/gradient_bucket.h"
#include "peal/train/ddp/pass_status.h"

namespace peal::train {

/// Sends a bucket when all gradients in it and in all earlier buckets are ready. So every rank
/// sends in the same order, although gradients become ready in any order. A bucket that is sent may
/// not change. With a communication hook or an early start, its operation starts at once. Otherwise
/// the operation runs at the end of backward, on the same thread, because a worker thread would
/// take the core from backward (docs/decisions/0045).
/// Order: collective. Threads: one at a time.
class BucketSender final {
 public:
  /// Keeps both references.
  BucketSender(ProcessGroup& group, const DataParallelOptions& options)
      : group_(group), options_(options) {}
  /// Waits for operations in flight, because they write to the memory of the buckets.
  ~BucketSender();
  BucketSender(const BucketSender&) = delete;
  BucketSender& operator=(const BucketSender&) = delete;

  /// Whether operations start before the end of backward; at first they do. Not inside of a pass.
  /// Order: the same on all ranks.
  void set_starts_early(bool starts_early) { starts_early_ = starts_early; }

  /// No gradient of the buckets is ready. Cost: allocates nothing if it had as many buckets before.
  void begin(const std::vector<GradientBucket>& buckets);
  /// One more gradient of the bucket is ready.
  void add_ready(std::size_t bucket) { missing_[bucket] -= 1; }
  /// Sends each bucket that may be sent now. Does not wait.
  /// Errors: those of all_reduce_async and of the communication hook.
  void send_ready(const std::vector<GradientBucket>& buckets);
  bool has_sent(std::size_t bucket) const { return bucket < sent_; }
  bool has_sent_any() const { return sent_ > 0; }

  /// Waits for the operations in flight, then runs those of all other buckets and the sum of the
  /// status over the ranks. Returns as wait_for_all.
  std::exception_ptr finish(const std::vector<GradientBucket>& buckets, PassStatus& status);

  /// Waits for all operations, also if one has failed. Afterwards no bucket counts as sent.
  /// Returns the error of the first operation that has failed, or null.
  std::exception_ptr wait_for_all();

 private:
  ReduceOptions average() const;

  ProcessGroup& group_;
  const DataParallelOptions& options_;
  std::vector<std::size_t> missing_;  // by bucket: gradients that are not ready
  std::size_t sent_ = 0;              // all buckets before it are sent
  std::size_t started_ = 0;           // the operations of all buckets before it are started
  bool starts_early_ = true;
  std::vector<WorkPtr> works_;
};

}  // namespace peal::train
