// The environment and the words of a container in Kubernetes. Pure. Called by the manifests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/launch/kubernetes/manifests.h"
#include "peal/launch/kubernetes/place.h"
#include "peal/launch/kubernetes/words.h"

namespace peal::launch::kubernetes {

/// What the container of a node executes, and with which variables.
struct Process {
  Json env = Json::array();
  std::vector<std::string> command{};  // of the manifest; empty: the image's entrypoint
  std::vector<std::string> args{};     // after the command
  /// The texts that `env` refers to, by their keys in the Secret: "job.NAME" for Job::env,
  /// "role.ROLE.NAME" for what only the role has.
  std::map<std::string, std::string> secret_texts{};
};

/// The process of a node of the group.
///   Values of the job are in the Secret, where nobody reads them by `kubectl get job`, and where
///   Kubernetes replaces nothing. In jobs with workerPoolSpecs, texts may contain $(NAME): peal
///   replaces what it knows, and Kubernetes the rest, such as $(RANK).
/// Errors: usage, for a reference to a variable that only the shell computes, and for a variable
///   that is too long for Linux.
Process process_of(const NodeGroup& group, const ManifestOptions& options);

/// The process of a node of a TrainJob. Kubeflow tells it its place in PET_*.
Process process_of_train_job(const NodeGroup& group, const ManifestOptions& options);

}  // namespace peal::launch::kubernetes
