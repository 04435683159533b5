// Averages gradients over the ranks of a group while backward still computes other gradients. The
// implementation of DistributedDataParallel, without its template.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/train/ddp/gradient_bucket.h"
#include "peal/train/ddp/gradient_hook.h"
#include "peal/train/ddp/module_snapshot.h"

namespace peal::train {

/// How to treat a parameter that the backward pass of some rank does not reach.
enum class UnusedParameters : unsigned char {
  kAreErrors,  // backward() throws on every rank, and names such parameters
  // Ranks that do not reach the parameter count as zero. If no rank reaches it, it gets no
  // gradient.
  kContributeNothing,
};

enum class BufferSync : unsigned char {
  kBroadcast,  // after every backward pass all ranks get the buffers of rank 0
  kNone,       // each rank keeps its buffers
};

struct DataParallelOptions {
  /// The approximate size of the buckets in which gradients are sent. Smaller buckets start
  /// earlier, larger buckets are more efficient.
  Bytes bucket_cap = 25_MiB;
  /// The size of the bucket that is complete first.
  Bytes first_bucket_cap = 1_MiB;
  UnusedParameters unused = UnusedParameters::kAreErrors;
  BufferSync buffers = BufferSync::kBroadcast;
  /// The timeout of each operation.
  Timeout timeout = kGroupTimeout;
};

/// States of one backward pass: idle -> (first gradient) collecting -> (all ranks ended it) idle.
/// A bucket is sent when it and all earlier buckets are complete. So every rank sends in the same
/// order, although gradients arrive in any order.
///
/// A change of the module: each pass first compares the module with the snapshot of the last
/// agreement. A rank that finds a change sets a mark in the first bucket, so all ranks learn of the
/// change at the end of the pass. Then the ranks compare their modules and throw if these differ.
/// If the layout has changed, the ranks make new buckets and average the gradients of this pass in
/// them, because the old buckets had no place for these gradients. Threads: one at a time, for all
/// calls and the backward passes.
class GradientReducer final {
 public:
  GradientReducer(std::shared_ptr<torch::nn::Module> module,
                  ProcessGroupPtr group,
                  const DataParallelOptions& options);
  /// Waits for operations in flight.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Off: gradients stay on this rank and accumulate. Returns the previous setting.
  enum class Sync : unsigned char { kOff, kOn };
  Sync set_sync(Sync sync) { return std::exchange(sync_, sync); }

  /// Called before a forward pass. Adds hooks to parameters that are new in the module, so that a
  /// backward pass is noticed even if it reaches only new parameters.
  /// Cost: a check of each parameter, about 0.2 us.
  void watch_new_parameters();

 private:
  struct Parameter {
    std::string name;
    torch::Tensor tensor;
    std::size_t bucket = 0;  // the bucket of its gradient
    std::size_t place = 0;
    bool arrived = false;  // whether this backward pass has reached it
  };

  void agree();
  void adopt_module();
  void make_buckets();
  void watch(const torch::Tensor& parameter, std::function<void()> call);

  void on_gradient(std::size_t parameter);
  void enter_backward();
  void begin_backward();
  void end_backward();
  void start_collecting();
  void take(const Parameter& parameter);
  void do_without(const Parameter& parameter);
  void send_complete_buckets();
  bool some_module_has_changed();
  void follow_change();
  void average_again();
  void send_buffers();
  void finish_works();
  std::exception_ptr wait_for_all();
  void settle_unused();

  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroupPtr group_;
  DataParallelOptions options_;
  Sync sync_ = Sync::kOn;

  ModuleSnapshot agreed_;  // the module of the last agreement
  // The change of this rank's module since then, for this pass.
  ModuleSnapshot::Change change_ = ModuleSnapshot::Change::kNone;

  std::vector<Parameter> parameters_;  // those that require gradients, each once
  std::vector<GradientBucket> buckets_;
  std::vector<std::size_t> missing_;  // by bucket: gradients that this pass has not reached yet
  std::size_t sent_ = 0;              // buckets that this pass has sent
  std::vector<WorkPtr> works_;
  int backward_ = kIdle;  // the pass whose gradients are being collected
  static constexpr int kIdle = -1;

  std::unordered_set<const c10::TensorImpl*> watched_;  // parameters with a hook
  std::vector<std::unique_ptr<GradientHook>> hooks_;    // last, because hooks use the other members
};

}  // namespace peal::train
