// Registers memory that torch uses for many operations, such as the buckets of
// DistributedDataParallel, which keep their addresses as long as the model lives.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <unordered_map>

#include "peal/base/guarded.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// Counts how often each storage is used in a group. Threads: any.
class RegistrationCache {
 public:
  /// Registers the tensor's storage (ProcessGroup::register_memory) at its 16th use: by then,
  /// copies into and out of the staging buffer have cost as much as a registration. The
  /// registration ends when torch frees the storage. Tries once for each storage; a failure changes
  /// nothing. Counts only storages that are large enough, from malloc, and wholly used by the
  /// tensor. The tensor must not be a Python object: a script may expect that a fork copies such a
  /// tensor, but a child shares registered memory. (Views of the storage may be Python objects:
  /// with gradient_as_bucket_view=True, gradients are.)
  /// Order: local; no operation on the tensor is in flight.
  /// Cost: a lookup in a hash table; nothing for small tensors, or if ranks share no memory. Once,
  ///   copies of the storage.
  void note_use(ProcessGroup& group, const at::Tensor& tensor);

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address from reuse
    int times = 0;
  };

  /// Counts a use; true at the use that registers the storage.
  bool is_due(const c10::Storage& storage);

  struct All {
    std::unordered_map<const c10::StorageImpl*, Seen> seen;
    std::size_t most = 256;  // at this size, entries of freed storages are removed
  };

  Guarded<All> all_;
};

}  // namespace peal::python
