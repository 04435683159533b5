// Whether the hosts of a launch are this machine. Called by `peal run`.
#pragma once

#include <span>

#include "peal/launch/host_list.h"

namespace peal::cli {

/// Errors: unsupported if a host is another machine, because `peal run` starts ranks on this
///   machine only.
void check_own_hosts(std::span<const launch::HostSlots> hosts);

}  // namespace peal::cli
