// Starts a job for `peal submit`.
#pragma once

#include <string>
#include <vector>

#include "peal/cli/submit_command.h"

namespace peal::cli {

/// Makes the folder of the job, starts the job, and prints its id to stdout and the next commands
/// to stderr. With SubmitRequest::stream_logs, shows the output of the job until it has ended
/// instead of the id.
/// Returns 0; with stream_logs, the exit code of the job, and 130 after Ctrl-C (the job goes on).
/// SIGINT, SIGTERM and SIGHUP take effect only after the start of the job is recorded: 128+n.
/// Errors: usage (the runner is missing or does not fit), resource (the engine refuses the job).
int submit(const SubmitRequest& request);

/// Rejects a job that `submit` would reject before it asks the engine: fields that the runner does
/// not support, files and folders of this machine that do not exist. Returns a sentence for
/// each field that the runner does not use. Without --to, looks only at files.
/// Errors: usage.
std::vector<std::string> check_job(const SubmitRequest& request);

/// For --print: what the runner gets, with an example of an id, and without secrets: the manifests
/// for Kubernetes, the job in peal's own form for the other runners and without --to.
std::string printed(const SubmitRequest& request);

}  // namespace peal::cli
