// Parts of manifests that Indexed Jobs and TrainJobs share. Pure. Called by manifests.cpp and
// train_job.cpp.
#pragma once

#include <string>
#include <vector>

#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {

/// The job's own labels and peal.job.
Json labels_of(const Job& job, const ManifestOptions& options);
Json metadata(const std::string& name, const Job& job, const ManifestOptions& options);

/// The only object that contains values of the job's environment, and the job's secret.
Json secret(const Job& job, const ManifestOptions& options);

/// Limits that are also requests, so that a node has its cores and memory for itself. Empty: none.
Json resources(const Resources& needs);

/// A volume in memory, for /dev/shm: containers have only 64 MB there, and data loaders need more.
Json shared_memory(const Resources& needs);

/// Sets "command" and "args" of a container, in a form that Kubernetes does not expand. `exports`:
/// see words_behind_shell.
void set_words(Json& container,
               const Job& job,
               const Role& role,
               const std::vector<std::string>& exports);

}  // namespace peal::launch::kubernetes
