// Averages gradients over the ranks of a group while backward still computes other gradients. The
// DistributedDataParallel of C++ and that of Python use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "peal/group/process_group.h"
#include "peal/train/ddp/arrival_order.h"
#include "peal/train/ddp/backward_end.h"
#include "peal/train/ddp/bucket_sender.h"
#include "peal/train/ddp/data_parallel_options.h"
#include "peal/train/ddp/gradient_buckets.h"
#include "peal/train/ddp/gradient_hook.h"
#include "peal/train/ddp/model_tensors.h"
#include "peal/train/ddp/module_snapshot.h"
#include "peal/train/ddp/pass_status.h"
#include "peal/train/ddp/place_allocator.h"
#include "peal/train/ddp/trained_parameter.h"

namespace peal::train {

/// A pass is one call of backward(), with all passes nested in it. Its states: idle -> (first
/// gradient) collecting -> (all ranks have ended it) idle. A gradient is *computed* when autograd
/// passes it on, *accumulated* when parameter.grad() contains it, and *ready* when its place in the
/// bucket holds what this rank contributes. A bucket is sent when it and all earlier buckets are
/// ready. At the end of the pass the ranks sum a PassStatus: which parameters were reached, and by
/// how many samples.
///
/// The order of buckets: first the reverse of the parameters' registration. When two passes have
/// had another order on rank 0, the ranks take over that order before the next pass.
///
/// A change of the module: each pass first compares the module with the snapshot of the last
/// agreement. A rank that finds a change says so in its status. Then the ranks compare their
/// modules and throw if these differ. If the layout has changed, the ranks make new buckets and
/// average the gradients of this pass in them.
///
/// Threads: one at a time, for all calls and the backward passes.
/// Errors: backward() throws usage (a gradient that is computed again after it was sent; a
///   parameter that was not reached, with UnusedParameters::kAreErrors; an unknown number of
///   samples), mismatch (the modules differ), unsupported (create_graph), resource (memory for
///   buckets), and the errors of the operations and of the hook.
class GradientReducer final {
 public:
  /// Compares the modules of all ranks, and by default gives every rank the values of rank 0. A
  /// group of one does nothing, unless the options ask for weights or a hook.
  /// Order: collective.
  /// Errors: usage (no module or no group), mismatch (the modules differ), unsupported (a parameter
  ///   that is not dense; parameters on several devices), resource.
  /// Cost: a broadcast of all parameters and buffers; allocates the buckets.
  GradientReducer(std::unique_ptr<ModelTensors> model,
                  ProcessGroupPtr group,
                  DataParallelOptions options);
  /// Waits for operations in flight. Must not run inside backward().
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Off: gradients stay on this rank and accumulate. Applies to passes that begin later. Returns
  /// the previous setting.
  /// Order: the same setting on all ranks for each pass.
  enum class Sync : unsigned char { kOff, kOn };
  Sync set_sync(Sync sync) { return std::exchange(sync_, sync); }

  /// Called before a forward pass. Adds hooks to parameters that are new in the module, so that a
  /// backward pass is noticed even if it reaches only new parameters. Does not communicate.
  /// Cost: a check of each parameter, about 0.02 us.
  void before_forward();

  /// The number of samples of each following pass, for Average::kBySamples. The value stays until
  /// the next call. Without any call, passes throw usage.
  void set_samples(std::int64_t samples) { samples_ = samples; }
  /// 1 if it was not set.
  std::int64_t samples() const { return samples_.value_or(1); }

  /// Takes part in a backward pass of the other ranks, for a rank without data: it contributes
  /// nothing, and gets the same gradients and buffers. Returns false if no rank had data; then no
  /// gradient has changed.
  /// Order: collective, in place of a backward pass.
  /// Errors, Cost: as a backward pass.
  bool pass_without_data();
  /// Averages what earlier passes have accumulated, without a backward pass.
  /// Order: collective, in place of a backward pass.
  /// Errors, Cost: as a backward pass.
  void average_window();
  /// From the next pass on, tells all ranks that this rank wants to stop; clear_stop ends that.
  void request_stop() { wants_to_stop_ = true; }
  void clear_stop() { wants_to_stop_ = false; }
  /// Whether some rank has requested it. The same on all ranks after a pass.
  bool stop_was_requested() const {
    return does_nothing() ? wants_to_stop_ : status_.some_wants_to_stop();
  }
  /// The number of ranks that had data in the last pass.
  int active_ranks() const { return status_.active_ranks(); }
  /// The divisor of Average::kMean: the number of all ranks, or of the ranks that had data. With
  /// kActiveRanks, drop gradients between passes.
  /// Order: the same on all ranks.
  enum class Divisor : unsigned char { kAllRanks, kActiveRanks };
  void set_divisor(Divisor divisor) { divisor_ = divisor; }

  /// From now on the hook averages. Not inside of a pass.
  /// Order: collective. Errors, Cost: in a group of one as construction; otherwise none.
  void set_hook(std::shared_ptr<CommunicationHook> hook);
  /// As Graph::kStatic. Before the first pass.
  /// Order: on all ranks.
  void set_static_graph() { options_.graph = Graph::kStatic; }

  /// Makes the buffers equal, as after a backward pass.
  /// Order: collective. Errors, Cost: as train::sync_buffers.
  void sync_buffers();

  const DataParallelOptions& options() const { return options_; }
  ProcessGroup& group() { return *group_; }

 private:
  /// What this rank contributes to a pass.
  enum class Data : unsigned char {
    kOfPass,    // a backward pass
    kOfWindow,  // what earlier passes have accumulated
    kNone,
  };

  /// The state of one pass. A new pass replaces it as a whole.
  struct Pass {
    Data data = Data::kOfPass;
    Sync sync = Sync::kOn;
    std::int64_t samples = 0;     // counted in window_samples_ unless an exception ends the pass
    bool is_open = false;         // not ended on all ranks
    bool is_interrupted = false;  // an exception has ended it
    bool sets_expected_times = false;  // the first pass with Graph::kStatic
    // The change of this rank's module since the last agreement.
    ModuleSnapshot::Change change = ModuleSnapshot::Change::kNone;
  };

  bool does_nothing() const;
  TrainedParameter::Earlier earlier() const;

  // ---- between passes
  void start();
  void adopt_module();
  void watch(const torch::Tensor& parameter, GradientCalls calls);
  void expect_pass();

  // ---- gradients are computed
  torch::Tensor gradient_computed(std::size_t index, const torch::Tensor& gradient);
  void gradient_accumulated(std::size_t index);
  void enter_pass();
  void begin_pass(Pass pass);
  void recover();
  void start_collecting();
  void fill_status();
  void require_expected(const TrainedParameter& parameter) const;
  double weight() const;
  void make_ready(TrainedParameter& parameter);
  bool holds_buckets() const;

  // ---- the pass ends
  void end_pass();
  void pass_without_backward(Data data);
  void exchange();
  void follow_change();
  void finish_average();
  /// The factors that turn what the operations have left into averages.
  struct Scale {
    double sum;     // of a sum over the ranks
    double bucket;  // of the contents of a bucket
  };
  Scale next_scale();
  void give_averages(double scale_of_sum);
  bool wants_other_order();
  void take_order_of_rank_zero();

  std::unique_ptr<ModelTensors> model_;
  ProcessGroupPtr group_;
  DataParallelOptions options_;
  Sync sync_ = Sync::kOn;
  bool wants_to_stop_ = false;
  Divisor divisor_ = Divisor::kAllRanks;

  ModuleSnapshot agreed_;  // the module of the last agreement
  GradientBuckets buckets_;
  BucketSender sender_;
  ArrivalOrder arrivals_;
  std::vector<std::size_t> considered_order_;  // on rank 0: the last one that was learned

  // ---- the window: the passes since the last averaging
  std::optional<std::int64_t> samples_;  // of the next pass
  std::int64_t window_samples_ = 0;
  // Of all ranks in the last window; scales contributions. At first a power of two, so that scaling
  // is exact, and large, so that a sum of float16 does not overflow.
  double usual_samples_ = 1024;

  // ---- the pass
  Pass pass_;
  PassStatus status_;
  BackwardEnd end_;
  bool was_nested_ = false;                    // the last pass contained another
  bool knows_expected_times_ = false;          // Graph::kStatic: the first pass is over
  std::unique_ptr<PlaceAllocator> allocator_;  // null if gradients are copied to their places

  std::unordered_set<const c10::TensorImpl*> watched_;  // parameters with a hook
  std::vector<std::unique_ptr<GradientHook>> hooks_;    // last, because hooks use the other members
};

}  // namespace peal::train
