// torch's store as peal's: where the ranks of a torch.distributed job meet already.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "peal/store/store.h"

namespace peal::python {

/// A view of the store. It keeps no wills: those who end before all have met are missed when the
/// time is over, unless a launcher has noted their end.
/// Errors: as Store has them; what torch's store throws is a resource error with its words.
std::unique_ptr<store::Store> make_torch_store(c10::intrusive_ptr<c10d::Store> store);

}  // namespace peal::python
