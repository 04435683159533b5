// The readers of the three forms of job files. Called by read_job.cpp, which checks the result.
#pragma once

#include <string>
#include <vector>

#include "peal/launch/job/field.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

struct FormResult {
  Job job;
  std::vector<std::string> notices{};
  std::vector<std::string> unused{};  // fields without a meaning here
};

/// Each reads the whole document. A job without a name has an empty name.
/// Errors: usage, with the place.
FormResult read_peal_form(const Field& document);
FormResult read_training_input(const Field& document);
FormResult read_worker_pools(const Field& document);

}  // namespace peal::launch
