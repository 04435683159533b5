// A Work that calls a function after its operation has ended. For operations on tensors, and for
// communication hooks.
#pragma once

#include <functional>

#include "peal/group/work.h"

namespace peal::train {

/// A Work of `work` whose first successful wait() calls `finish` on the waiting thread. `finish`
/// may start operations and wait for them, if every rank waits in the same order. Without a wait(),
/// `finish` is not called.
WorkPtr finish_with(WorkPtr work, std::function<void()> finish);

}  // namespace peal::train
