// The environment of a node in Kubernetes. Pure. Called by the manifests.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {

/// A role, and where its nodes are among all nodes of the job.
struct PlacedRole {
  const Role& role;
  int first_rank = 0;  // of its first node
  int all_nodes = 1;   // of the job
};
std::vector<PlacedRole> placed_roles(const Job& job);

/// The texts of the Secret, by key: "job.NAME" for Job::env, "role.ROLE.NAME" for Role::env, and
/// "job.PEAL_SECRET".
std::map<std::string, std::string> secret_texts(const Job& job, const ManifestOptions& options);

/// The variables of a node, as a list for a container. Values of the job come from the Secret,
/// because Kubernetes expands $(NAME) in a value of a manifest.
Json variables(const Job& job, const PlacedRole& place, const ManifestOptions& options);

/// The same for a TrainJob: without those that tell a node its place.
Json variables_without_place(const Job& job, const Role& role, const ManifestOptions& options);

/// The port where the ranks meet: MASTER_PORT of the job, or kMasterPort.
std::string master_port(const Job& job);

/// The words that a container executes: the role's command and arguments, behind `peal run` if a
/// node has several ranks, and behind a shell if `exports` is not empty. `exports`: assignments in
/// the language of the shell, such as "RANK=$((JOB_COMPLETION_INDEX + 1))".
std::vector<std::string> words_behind_shell(const Job& job,
                                            const Role& role,
                                            const std::vector<std::string>& exports);

/// `text` for a field in which Kubernetes expands $(NAME): with "$$" for each "$".
std::string unexpanded(std::string_view text);

}  // namespace peal::launch::kubernetes
