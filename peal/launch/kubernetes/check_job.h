// Rejects jobs that cannot run in Kubernetes. Called by the manifests.
#pragma once

#include <string_view>

#include "peal/launch/job/job.h"

namespace peal::launch::kubernetes {

/// Errors: usage; the text names the role or variable, and says what to do.
void check_for_kubernetes(const Job& job);

/// Errors: usage, if the variable is too long for Linux to start a process with it.
void check_variable_size(std::string_view name, std::string_view value);

}  // namespace peal::launch::kubernetes
