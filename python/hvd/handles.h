// The handles of asynchronous operations: numbers, as in Horovod.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <torch/types.h>

#include "peal/train/horovod/pending.h"

namespace peal::python {

/// What synchronize returns.
struct Pair {
  at::Tensor output, splits;
};
using Result = std::variant<at::Tensor, std::vector<at::Tensor>, Pair>;

/// An operation that has started.
struct Started {
  enum class Returns : std::uint8_t { kTensor, kList, kPair };

  hvd::PendingPtr pending;
  Returns returns;
  std::optional<at::Device> device = {};  // of a pair's splits
};

/// Waits for the result, and notices Ctrl-C meanwhile. Call without the GIL.
Result wait_for_result(const Started& started);

/// Returns the handle, which is different from all others of the process.
std::int64_t keep_handle(Started started);

/// Whether the operation has ended. Errors: usage (no such handle).
bool poll_handle(std::int64_t handle);

/// Waits for the result and forgets the handle; nothing if there is no such handle.
std::optional<Result> synchronize_handle(std::int64_t handle);

/// Forgets all handles.
void forget_handles();

}  // namespace peal::python
