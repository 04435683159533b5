// The environment, the command and the arguments of a container in Kubernetes. Pure. Called by the
// manifests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/launch/kubernetes/manifests.h"
#include "peal/launch/kubernetes/place.h"
#include "peal/launch/kubernetes/words.h"

namespace peal::launch::kubernetes {

/// The command of the container of a node, and its variables.
struct Process {
  Json env = Json::array();
  std::vector<std::string> command{};  // of the manifest; empty: the image's entrypoint
  std::vector<std::string> args{};     // after the command
  /// The texts that `env` refers to, by their keys in the Secret: "job.NAME" for Job::env,
  /// "role.ROLE.NAME" for what only the role has.
  std::map<std::string, std::string> secret_texts{};
};

/// The process of a node of the group.
///   Values of the job are in the Secret: `kubectl get job` does not show them, and Kubernetes
///   replaces nothing there. In jobs with workerPoolSpecs, texts may contain $(NAME): peal replaces
///   the variables that it knows, and Kubernetes replaces the others, such as $(RANK).
/// Errors: usage, for a reference to a variable that only the shell computes, and for a variable
///   that is too long for Linux.
Process process_of(const NodeGroup& group, const ManifestOptions& options);

/// The process of a node of a TrainJob. Kubeflow sets the place of the node in PET_*.
Process process_of_train_job(const NodeGroup& group, const ManifestOptions& options);

}  // namespace peal::launch::kubernetes
