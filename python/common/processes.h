// Forks: whether this is still the process that made a group. Used by both extension modules, each
// of which has its own.
#pragma once

#include <string>

namespace peal::python {

/// Counts the forks that lie between the first process and this one. Cost: a load.
int generation();

/// Errors: usage, where this process was forked from the one that is in the group, with what to
/// call instead.
void check_not_forked(int generation_of_group, const std::string& group, const char* instead);

}  // namespace peal::python
