// The names of the forms of job files, as peal's own form writes and reads them.
#pragma once

#include <string_view>

#include "peal/launch/job/field.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

/// "peal", "training_input", "worker_pool_specs"
std::string_view name_of(JobForm form);

/// Errors: usage for other texts.
JobForm read_form(const Field& field);

}  // namespace peal::launch
