// The fields of a job that have no meaning if peal's own launcher runs it on this machine, over ssh
// or by mpirun. Called by `peal submit`, which tells them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/job.h"

namespace peal::launch::submitted {

/// A sentence for each such field that is set. `runner`: local, ssh or mpi. Pure.
std::vector<std::string> unused_fields(const Job& job, std::string_view runner);

}  // namespace peal::launch::submitted
