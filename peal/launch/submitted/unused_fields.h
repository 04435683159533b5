// The fields that have no meaning in a job that peal's own launcher runs on this machine, over ssh
// or by mpirun. Called by `peal submit`, which prints the sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/job.h"

namespace peal::launch::submitted {

/// A sentence for each such field that is set. `runner`: local, ssh or mpi. Pure.
std::vector<std::string> unused_fields(const Job& job, std::string_view runner);

}  // namespace peal::launch::submitted
