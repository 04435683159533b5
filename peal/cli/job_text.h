// The states of submitted jobs as text and as JSON. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "peal/launch/jobs/job_list.h"
#include "peal/launch/jobs/job_records.h"
#include "peal/launch/runner.h"

namespace peal::cli {

/// "mnist-7k2pxd failed: rank 3 (worker 2 on node1) was killed by SIGKILL"
std::string end_sentence(const launch::JobStatus& status);

/// When a job has ended. Nothing if it has not, or if its end was not recorded.
using EndTime = std::optional<launch::jobs::WallTime>;

/// Several lines: the job, and a table of its nodes.
std::string status_text(const launch::jobs::Submission& submission,
                        const launch::JobStatus& status,
                        EndTime ended_at);
/// An object with the same values; "nodes" is a list.
std::string status_json(const launch::jobs::Submission& submission,
                        const launch::JobStatus& status,
                        EndTime ended_at);

/// A table with a line for each job.
std::string list_text(std::span<const launch::jobs::JobEntry> jobs);
std::string list_json(std::span<const launch::jobs::JobEntry> jobs);

}  // namespace peal::cli
