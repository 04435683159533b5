// An asynchronous operation of Horovod. For training programs, by peal/horovod.h.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace peal::hvd {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

/// The operations of one call; pending.h.
class Pending;
using PendingPtr = std::shared_ptr<Pending>;

/// As Pending::poll and Pending::wait.
bool poll(const PendingPtr& pending);
const Tensors& wait_for(const PendingPtr& pending);

struct AllToAllResult {
  Tensor output;
  Tensor received_splits;  // the rows from each rank, int32
};

/// An operation that has started, and its result: a Tensor, Tensors, or an AllToAllResult. A value:
/// copies are the same operation. A handle that is released early does not end its operation.
/// Threads: one at a time.
template <class Result>
class Handle final {
 public:
  explicit Handle(PendingPtr pending) : pending_(std::move(pending)) {}

  /// Whether synchronize returns at once. Causes progress.
  bool poll() const { return hvd::poll(pending_); }

  /// Waits for the result. Later calls return the same result.
  Result synchronize() const {
    const Tensors& results = wait_for(pending_);
    if constexpr (std::is_same_v<Result, Tensors>) {
      return results;
    } else if constexpr (std::is_same_v<Result, AllToAllResult>) {
      return {results[0], results[1]};
    } else {
      return results.front();
    }
  }

 private:
  PendingPtr pending_;
};

template <class Result>
bool poll(const Handle<Result>& handle) {
  return handle.poll();
}
template <class Result>
Result synchronize(const Handle<Result>& handle) {
  return handle.synchronize();
}

}  // namespace peal::hvd
