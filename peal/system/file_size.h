// The limit of file sizes (`ulimit -f`, RLIMIT_FSIZE). It applies to shared memory too. The system
// ends a process that exceeds the limit by SIGXFSZ, unless the process ignores the signal. Used
// before a file is created, or grows by a known amount.
#pragma once

#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// Checks that this process may create a file of `size`. `what` names the purpose of the file.
/// Errors: resource, which names the limit.
/// Cost: a system call.
void check_file_size(Bytes size, std::string_view what);

}  // namespace peal
