// The limit of open files. Its soft part is mostly 1024, which a few hundred ranks exceed, and may
// be raised by anyone up to the hard one. Used where descriptors are counted by ranks.
#pragma once

#include <string_view>

namespace peal {

/// Raises this process's limit to `needed` open files where it is lower. Those that it starts
/// inherit it.
/// Errors: resource, "`what` needs about ... open files", where the hard limit is lower or the
/// system refuses.
/// Threads: any number at once; others that set the limit may undo it.
void allow_open_files(long needed, std::string_view what);

/// The same, but raises the limit to `wished` as far as the system allows it.
void allow_open_files(long needed, long wished, std::string_view what);

/// How many files this process has open; 0 if the system does not say it. Cost: a look at each.
long open_files();

}  // namespace peal
