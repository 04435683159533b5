// The limit of open files. The soft limit is often 1024, which a few hundred ranks exceed. Any
// process may raise it up to the hard limit. Used where the number of descriptors grows with ranks.
#pragma once

#include <string_view>

namespace peal {

/// Raises this process's soft limit to `needed` open files if it is lower. Child processes inherit
/// it.
/// Errors: resource, "`what` needs about ... open files", if the hard limit is lower or the system
///   rejects the change.
/// Threads: any number at once; other code that sets the limit may undo the change.
void allow_open_files(long needed, std::string_view what);

/// The same, but raises the limit up to `wished` if the system allows it.
void allow_open_files(long needed, long wished, std::string_view what);

/// The number of open files of this process; 0 if it is unknown. Cost: grows with the number.
long open_files();

}  // namespace peal
