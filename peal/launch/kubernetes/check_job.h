// Refuses jobs that cannot run in Kubernetes. Called by the manifests.
#pragma once

#include "peal/launch/job/job.h"

namespace peal::launch::kubernetes {

/// Errors: usage; the text names the role or variable, and says what to do.
void check_for_kubernetes(const Job& job);

/// The role starts at a rank above 0 and has several nodes, so a shell in the container has to
/// compute RANK. `first_rank`: of the role's nodes.
bool needs_shell(const Role& role, int first_rank);

}  // namespace peal::launch::kubernetes
