// Compares the options of the ranks before the first operation by name.
#pragma once

#include "peal/group/process_group.h"
#include "peal/named/named_operations.h"

namespace peal::named {

/// Rejects different options, because the ranks would make different decisions.
/// Order: collective. Errors: mismatch, on all ranks.
void require_same(ProcessGroup& group, const Options& options);

}  // namespace peal::named
