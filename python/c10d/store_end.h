// When rank 0 has closed the store of torch's that it served, as the other ranks see it.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "peal/base/fd.h"

namespace peal::python {

/// A connection to the server of a store on which nothing is said, and which ends with it.
class StoreEnd {
 public:
  /// Nothing to wait for.
  StoreEnd() = default;
  /// Of a TCPStore, under any prefixes; of another, or where nobody serves it any more, nothing to
  /// wait for. Cost: a descriptor here and at the server for as long as this lives; to connect
  /// takes a second at most.
  explicit StoreEnd(c10d::Store& store);

  /// Waits for it, 250 ms at most: the server lives on where something in its process holds the
  /// store, as a model in DistributedDataParallel does, or a script that has made it itself. Who
  /// meets again does so in the same store then.
  void wait() const;

 private:
  Fd connection_;
};

}  // namespace peal::python
