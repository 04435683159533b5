// Lets the other ranks wait until rank 0 has closed the torch store that it served.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "peal/system/fd.h"

namespace peal::python {

/// A silent connection to the server of a store. The server's end closes the connection.
class StoreEnd {
 public:
  /// `wait` returns at once.
  StoreEnd() = default;
  /// Connects to the server of a TCPStore, also under prefixes. For another store, or without a
  /// server, `wait` returns at once.
  /// Cost: a descriptor on both sides for the lifetime of this object; at most a second to connect.
  explicit StoreEnd(c10d::Store& store);

  /// Waits for the end of the server, 250 ms at most. The server may live on, because another
  /// object of its process holds the store: a model in DistributedDataParallel, or a script that
  /// made the store. Ranks that meet again then use the same store.
  void wait() const;

 private:
  Fd connection_;
};

}  // namespace peal::python
