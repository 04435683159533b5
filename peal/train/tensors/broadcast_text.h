// Sends a text of any length to all ranks.
#pragma once

#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// The root's text, on every rank. The texts of the other ranks do not matter.
/// Order: collective.
/// Errors: those of broadcast; each operation has the timeout `timeout`.
/// Cost: 2 broadcasts.
std::string broadcast_text(ProcessGroup& group,
                           const std::string& text,
                           Rank root,
                           Timeout timeout = kGroupTimeout);

}  // namespace peal::train
