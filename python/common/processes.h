// Whether this is still the process that made a group. Used by both extension modules.
#pragma once

#include <string>

namespace peal::python {

/// Errors: usage, where this process was forked from the one that is in the group, with what to
/// call instead.
void check_not_forked(int generation_of_group, const std::string& group, const char* instead);

}  // namespace peal::python
