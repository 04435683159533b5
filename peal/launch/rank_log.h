// Opens the log files of a rank, or of a worker of an elastic job. Called by outputs.cpp and by
// elastic/worker_outputs.cpp.
#pragma once

#include <string>

#include "peal/launch/log_file.h"
#include "peal/launch/options.h"
#include "peal/launch/screen.h"

namespace peal::launch {

/// The log of one stream: <log_directory>/<name>.out, or <log_directory>/<name>/stdout, by
/// `options.log_names`. Creates missing folders. No log if there is no log directory.
/// Errors: resource, which names the option.
LogFile open_log(const LaunchOptions& options, const std::string& name, Channel channel);

}  // namespace peal::launch
