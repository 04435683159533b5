// The readers of the three forms of job files. Called by read_job.cpp, which checks the result.
#pragma once

#include "peal/launch/job/field.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {

/// Each reads the whole document. A job without a name has an empty name.
/// Errors: usage, with the place.
ReadJob read_peal_form(const Field& document);
ReadJob read_training_input(const Field& document);
ReadJob read_worker_pools(const Field& document);

}  // namespace peal::launch
