// Jobs of the tests, as JSON with the names of the fields of Job. No more than the tests need.
#pragma once

#include <string>

#include "peal/launch/job/job.h"

namespace peal::launch::kubernetes {

Job job_in_file(const std::string& path);

}  // namespace peal::launch::kubernetes
