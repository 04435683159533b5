// The output of a submitted job on this terminal: for `peal logs`, and for `peal submit
// --stream-logs`.
#pragma once

#include <string>

#include "peal/launch/jobs/job_records.h"
#include "peal/launch/runner.h"

namespace peal::cli {

struct ShownLogs {
  int exit_code = 0;  // 130 after Ctrl-C
  bool has_lines = false;
};

/// Writes the lines that the query selects to stdout, with "[worker-1] " before each line if the
/// job has several ranks, or "[worker-1:3] " if its nodes have several. Before a restart of the
/// job, writes the reason to stderr. After Ctrl-C, the job goes on. Errors: of Runner::logs.
ShownLogs show_logs(launch::Runner& runner,
                    const launch::jobs::Submission& submission,
                    launch::LogQuery query);

/// To stderr, after a signal has ended a command of the user: how to end the job.
void say_job_goes_on(const std::string& id);

/// To stderr: "peal: mnist-7k2pxd succeeded".
void say_end(const launch::JobStatus& status);

/// Shows the output until the job has ended, and then how it has ended. Returns the exit code of
/// the job; 130 after Ctrl-C.
int stream(launch::Runner& runner, const launch::jobs::Submission& submission);

}  // namespace peal::cli
