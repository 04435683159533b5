// all_reduce of sparse tensors, which gloo's users have: each rank's elements are gathered and
// added.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/base/task_thread.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// tensors[0] = sum of the list, coalesced. torch's own addition lacks half-precision types.
/// Shape: the same for all, and the same sparse dimensions (else torch's RuntimeError).
void add_into_first(const std::vector<at::Tensor>& tensors);

/// Works in a group of its own with the same ranks and on a thread of its own, since how much comes
/// is known only when a part has come: meanwhile other operations may begin.
/// Threads: one at a time, but `drain`, `end` and `group` any.
class SparseSum {
 public:
  /// Order: a collective, as new_group. Errors: of new_group.
  SparseSum(ProcessGroup& group, Timeout timeout);
  /// Gives a sum that is under way a second to end, and ends it then.
  ~SparseSum();
  SparseSum(const SparseSum&) = delete;
  SparseSum& operator=(const SparseSum&) = delete;

  const ProcessGroupPtr& group() const { return group_; }

  /// tensor = sum over r of tensor_r, coalesced
  /// Shape: the same on every rank, and the same sparse dimensions; any number of elements.
  /// Order: as all_reduce.
  /// Errors: of the Work: mismatch (another shape or type), and all_gather's.
  /// Cost: three all_gathers: of sizes, indices, and values.
  WorkPtr start(at::Tensor tensor, Timeout timeout);

  /// Waits for the sums that are under way, which the end of the group would cut in two: between
  /// two of its operations nothing is under way there. Returns whether they have ended by the
  /// deadline. Signals end them.
  bool drain(Deadline deadline);

  /// Ends it, the thread too: sums that are under way have until the deadline. Later ones fail.
  void end(Deadline deadline);

 private:
  ProcessGroupPtr group_;
  Guarded<std::weak_ptr<Work>> last_;
  TaskThread thread_;  // ends before the group
};

}  // namespace peal::python
