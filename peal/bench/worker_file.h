// Finds the files of the workers in other languages (workers/).
#pragma once

#include <string>
#include <string_view>

namespace peal::bench {

/// The path of "mpi_worker.c" or "gloo_worker.py": in share/peal/bench, beside the folder of this
/// program. Errors: resource, if the file is not there.
std::string worker_file(std::string_view name);

}  // namespace peal::bench
