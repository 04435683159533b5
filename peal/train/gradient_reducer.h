// Averages gradients over the ranks of a group while backward still computes others. The machinery
// behind DistributedDataParallel, without its template.
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
#include "peal/train/gradient_bucket.h"
#include "peal/train/gradient_hook.h"
#include "peal/train/module_snapshot.h"

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
/// A bucket is sent when it and all before it are complete. So every rank sends in the same order,
/// although gradients come in any order.
///
/// A change of the module: each pass begins by comparing the module with the snapshot of the last
/// agreement. A rank that finds a change sets a mark in the first bucket, so all ranks learn of the
/// change at the end of the pass. Then they compare their modules, which throws where the modules
/// differ. If the layout has changed, the buckets are made again, and the gradients of this pass
/// are averaged in the new buckets: the old buckets had no place for them.
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

  /// Called before a forward pass: a parameter that the module has got since then begins a backward
  /// pass too, so that a pass which reaches none of the old parameters is noticed.
  /// Cost: a look at each parameter, about 0.2 us.
  void watch_new_parameters();

 private:
  struct Parameter {
    std::string name;
    torch::Tensor tensor;
    std::size_t bucket = 0;  // where its gradient lies
    std::size_t place = 0;
    bool arrived = false;  // in this backward pass
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

  ModuleSnapshot agreed_;                                          // as all ranks have it
  ModuleSnapshot::Change change_ = ModuleSnapshot::Change::kNone;  // here, since then; in this pass

  std::vector<Parameter> parameters_;  // that require gradients, each once
  std::vector<GradientBucket> buckets_;
  std::vector<std::size_t> missing_;  // by bucket: gradients that have not come in this pass
  std::size_t sent_ = 0;              // buckets, in this pass
  std::vector<WorkPtr> works_;
  int backward_ = kIdle;  // which pass is being collected
  static constexpr int kIdle = -1;

  std::unordered_set<const c10::TensorImpl*> watched_;  // have a hook
  std::vector<std::unique_ptr<GradientHook>> hooks_;    // last: they call the rest
};

}  // namespace peal::train
