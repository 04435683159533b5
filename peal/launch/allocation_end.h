// When Slurm ends the allocation in which this process runs, and whether Slurm preempts the job.
// Called by launchers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/config/environment.h"

namespace peal::launch {

/// Asks squeue. Returns nothing outside of Slurm, without a limit, and if Slurm does not answer.
std::optional<Timeout> time_left_of_allocation(const Environment& environment);

/// Whether Slurm has begun to preempt the job: it has sent SIGTERM to the steps of the job, and
/// ends the job after the GraceTime of the partition. Asks scontrol. Returns false outside of
/// Slurm, and once Slurm ends the job (COMPLETING). Errors: resource (Slurm does not answer).
bool is_preempted(const Environment& environment);

/// Whether a line of `job` in the output of `scontrol show job --oneliner` shows it. Pure.
bool shows_preemption(std::string_view text, std::string_view job);

/// Whether a preemption of the job in the line has begun, also if the job has ended since. Pure.
bool has_preempt_time(std::string_view line);

/// Reads the time left as squeue prints it: "1-02:03:04", "02:03:04", "3:04". A heterogeneous job
/// has several lines: the shortest time counts. Returns nothing for other texts, such as
/// "UNLIMITED". Pure.
std::optional<Timeout> parse_time_left(std::string_view text);

}  // namespace peal::launch
