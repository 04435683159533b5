// The label by which the objects of a job are found on its engine: containers, and the objects of
// Kubernetes.
#pragma once

namespace peal::launch {

/// Its value is the id of the job: in Kubernetes as job_name makes it, else as it is.
inline constexpr const char* kJobLabel = "peal.job";

}  // namespace peal::launch
