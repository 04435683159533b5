// When Slurm ends the allocation in which this process runs. Called by launchers that warn their
// ranks before that.
#pragma once

#include <optional>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/config/environment.h"

namespace peal::launch {

/// Asks squeue. Nothing outside of Slurm, without a limit, and if Slurm does not answer.
std::optional<Timeout> time_left_of_allocation(const Environment& environment);

/// The time left as squeue prints it: "1-02:03:04", "02:03:04", "3:04". Of several lines, which a
/// heterogeneous job has, the shortest time. Nothing for other texts: "UNLIMITED". Pure.
std::optional<Timeout> parse_time_left(std::string_view text);

}  // namespace peal::launch
