// Adapts torch's store, which the ranks of a torch.distributed job already use, to peal's Store.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "peal/store/store.h"

namespace peal::python {

/// A view of the store. It supports no last wills: if a rank ends during the rendezvous, the others
/// notice at the timeout, unless a launcher has recorded the end.
/// Errors: as Store; an exception of torch's store becomes a resource error with its text.
std::unique_ptr<store::Store> make_torch_store(c10::intrusive_ptr<c10d::Store> store);

}  // namespace peal::python
