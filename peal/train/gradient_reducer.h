// Averages gradients over the ranks of a group while backward still computes others. The machinery
// behind DistributedDataParallel, without its template.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/gradient_bucket.h"
#include "peal/train/gradient_hook.h"

namespace peal::train {

/// What happens when a backward pass reaches a parameter on no or not on every rank.
enum class UnusedParameters : unsigned char {
  kAreErrors,          // backward() throws on every rank, and names them
  kContributeNothing,  // ranks that did not reach it count as zero; reached by none it gets nothing
};

enum class BufferSync : unsigned char {
  kBroadcast,  // after every backward pass rank 0's buffers are everyone's
  kNone,       // each rank keeps its own
};

struct DataParallelOptions {
  /// Gradients travel in buckets of about this size. Smaller ones start earlier, larger ones are
  /// more efficient.
  Bytes bucket_cap = 25_MiB;
  /// Of the bucket that is complete first.
  Bytes first_bucket_cap = 1_MiB;
  UnusedParameters unused = UnusedParameters::kAreErrors;
  BufferSync buffers = BufferSync::kBroadcast;
  /// Of each operation.
  Timeout timeout = kGroupTimeout;
};

/// States of one backward pass: idle -> (first gradient) collecting -> (all ranks ended it) idle.
/// A bucket is sent when it and all before it are complete, so that every rank sends in the same
/// order, whatever the order in which its gradients come.
/// Threads: all calls, and the backward passes, from one at a time.
class GradientReducer final {
 public:
  GradientReducer(std::shared_ptr<torch::nn::Module> module,
                  ProcessGroupPtr group,
                  const DataParallelOptions& options);
  /// Waits for operations under way.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Off: gradients stay on this rank and accumulate. Returns what it was.
  enum class Sync : unsigned char { kOff, kOn };
  Sync set_sync(Sync sync) { return std::exchange(sync_, sync); }

 private:
  struct Parameter {
    std::string name;
    torch::Tensor tensor;
    std::size_t bucket = 0;  // where its gradient lies
    std::size_t place = 0;
    bool arrived = false;  // in this backward pass
  };

  void check_and_broadcast();
  void make_buckets();
  void on_gradient(std::size_t parameter);
  void begin_backward();
  void end_backward();
  void send_complete_buckets();
  void do_without(const Parameter& parameter);
  void send_buffers();
  std::exception_ptr wait_for_all();
  void settle_unused();

  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroupPtr group_;
  DataParallelOptions options_;
  Sync sync_ = Sync::kOn;

  std::vector<Parameter> parameters_;  // that require gradients, each once
  std::vector<GradientBucket> buckets_;
  std::vector<std::size_t> missing_;  // by bucket: gradients that have not come in this pass
  std::size_t sent_ = 0;              // buckets, in this pass
  std::vector<WorkPtr> works_;
  int backward_ = kIdle;  // which pass is being collected
  static constexpr int kIdle = -1;

  std::vector<std::unique_ptr<GradientHook>> hooks_;  // last: they call the rest
};

}  // namespace peal::train
