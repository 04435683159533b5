// Prints a job in peal's own form. Called by `peal submit --print`.
#pragma once

#include <string>

#include "peal/launch/job/job.h"

namespace peal::launch {

/// The job as YAML that read_job reads back to an equal job. Fields with their default values are
/// left out. The job fulfils `check`.
std::string print_job(const Job& job);

}  // namespace peal::launch
