// Memory that torch uses for one operation after the other is registered: the buckets of
// DistributedDataParallel, which lie where they are as long as the model.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <unordered_map>

#include "peal/base/guarded.h"
#include "peal/group/process_group.h"

namespace peal::python {

/// Which storages a group has been given, and how often. Threads: any.
class RegistrationCache {
 public:
  /// Registers the tensor's storage (ProcessGroup::register_memory) when it comes for the 16th
  /// time: by then copies into the stage and out of it have cost as much as registration does. It
  /// ends when torch frees the storage. It is tried once for a storage, and where it fails all
  /// stays as it was. A storage counts if it is large enough, malloc's, wholly the tensor's, and
  /// the tensor is no object of Python's: what a script holds in its hands might be meant to be
  /// copied by a fork, and registered memory is shared with the child. (Views of the storage may
  /// be: with gradient_as_bucket_view=True, gradients are.) Order: local; no operation on the
  /// tensor is under way. Cost: a look into a hash table; nothing for small tensors, or where ranks
  /// share no memory. Once, copies of the storage.
  void see(ProcessGroup& group, const at::Tensor& tensor);

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // so that its address is no other's
    int times = 0;
  };

  /// Whether this is the time to register it.
  bool is_due(const c10::Storage& storage);

  struct All {
    std::unordered_map<const c10::StorageImpl*, Seen> seen;
    std::size_t most = 256;  // from here on those are looked for that torch has freed
  };

  Guarded<All> all_;
};

}  // namespace peal::python
