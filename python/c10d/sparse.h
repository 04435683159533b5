// all_reduce of sparse tensors, as gloo offers: gathers and adds the elements of all ranks.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/group/process_group.h"
#include "peal/system/task_thread.h"

namespace peal::python {

/// tensors[0] = sum of the list, coalesced
/// torch's addition lacks half-precision types.
/// Shape: the same for all tensors, with the same sparse dimensions (else torch's RuntimeError).
void add_into_first(const std::vector<at::Tensor>& tensors);

/// Uses its own group, of the same ranks, and its own thread. A sum learns sizes in its first step,
/// and other operations may start before the second.
/// Threads: one at a time; for `drain`, `end` and `group` any.
class SparseSum {
 public:
  /// Order: a collective, as new_group. Errors: as new_group.
  SparseSum(ProcessGroup& group, Timeout timeout);
  /// Gives a sum in flight one second, then aborts it.
  ~SparseSum();
  SparseSum(const SparseSum&) = delete;
  SparseSum& operator=(const SparseSum&) = delete;

  const ProcessGroupPtr& group() const { return group_; }

  /// tensor = sum over r of tensor_r, coalesced
  /// Shape: the same on every rank, and the same sparse dimensions; any number of elements.
  /// Order: as all_reduce.
  /// Errors: from the Work: mismatch (shapes or types differ), and those of all_gather.
  /// Cost: three all_gathers: of sizes, indices, and values.
  WorkPtr start(at::Tensor tensor, Timeout timeout);

  /// Waits for the sums in flight. The end of the group does not wait for them, because between
  /// two operations of a sum the group has nothing in flight. Returns whether the sums have ended
  /// by the deadline. A signal ends the sums.
  bool drain(Deadline deadline);

  /// Ends the group and the thread. Sums in flight get until the deadline; later sums fail.
  void end(Deadline deadline);

 private:
  ProcessGroupPtr group_;
  Guarded<std::weak_ptr<Work>> last_;
  TaskThread thread_;  // ends before the group
};

}  // namespace peal::python
