// The variables CLUSTER_SPEC and TF_CONFIG of the managed forms. Pure. Called by variables.cpp.
#pragma once

#include <string>
#include <string_view>

#include "peal/launch/job/job.h"

namespace peal::launch::kubernetes {

/// The hosts of all roles, and which one this node is. `index`: of the node in its role, as text
/// that is put into the JSON: a number, or a reference to a variable.
std::string cluster_spec(const Job& job,
                         std::string_view id,
                         const Role& role,
                         std::string_view index);

/// The same without evaluators among the hosts, and with the names of roles that TensorFlow knows.
std::string tf_config(const Job& job,
                      std::string_view id,
                      const Role& role,
                      std::string_view index);

}  // namespace peal::launch::kubernetes
