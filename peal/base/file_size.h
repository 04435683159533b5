// The limit of file sizes (`ulimit -f`, RLIMIT_FSIZE). It holds for shared memory too. The system
// ends a process that goes beyond it by SIGXFSZ, unless the process ignores the signal. Used where
// a file is made or grows by an amount that is known before.
#pragma once

#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// Errors: resource, which names the limit, if this process may not make a file of `size`. `what`:
/// what the file is for. Cost: a system call.
void check_file_size(Bytes size, std::string_view what);

}  // namespace peal
