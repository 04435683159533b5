// Checks that this process is the one that made a group. Used by the extension modules.
#pragma once

#include <string>

namespace peal::python {

/// Errors: usage if this process was forked from a member of the group. The text names `instead`,
/// the call that makes a new group.
void check_not_forked(int generation_of_group, const std::string& group, const char* instead);

}  // namespace peal::python
