// The objects of a job in Kubernetes, as JSON. Pure: the same job and options give the same text,
// and no cluster is asked. Called by the runner, and by `peal submit --dry-run`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "peal/base/secret.h"
#include "peal/launch/job/job.h"
#include "peal/launch/job_label.h"

namespace peal::launch::kubernetes {

using Json = nlohmann::ordered_json;

/// Where the ranks meet, on the first node. A fixed port, because each pod has its own address.
inline constexpr std::uint16_t kMasterPort = 29500;

/// Labels and annotations of all objects of a job. The status is read from them.
inline constexpr const char* kRoleLabel = "peal.role";  // the role's part of the name
inline constexpr const char* kIdAnnotation = "peal.id";
inline constexpr const char* kRoleAnnotation = "peal.role";
inline constexpr const char* kFirstRankAnnotation = "peal.first-rank";    // of the first node
inline constexpr const char* kFirstIndexAnnotation = "peal.first-index";  // the same, in the role
inline constexpr const char* kRanksAnnotation = "peal.ranks-per-node";
inline constexpr const char* kDecidesAnnotation = "peal.decides-result";

/// The name of the only container of a pod.
inline constexpr const char* kContainer = "node";

struct ManifestOptions {
  std::string id{};             // of the job, any text
  std::string job_namespace{};  // empty: that of kubectl's configuration
  Secret secret{};              // becomes PEAL_SECRET, unless the job sets PEAL_SECRET
  std::string runtime = "torch-distributed";  // of a TrainJob: the name of a ClusterTrainingRuntime
};

/// In the order of creation: a headless Service for all nodes, a Secret with the values of the
/// environment, and an Indexed Job for each role. A later role with several nodes and without a
/// command gets an Indexed Job for each node.
/// Errors: usage, if the job cannot run in Kubernetes; the text says what to do.
std::vector<Json> manifests(const Job& job, const ManifestOptions& options);

/// A Secret and a TrainJob of Kubeflow (trainer.kubeflow.org/v1alpha1). A TrainJob has one kind of
/// node, so all roles must be equal but for their names and counts.
/// Errors: usage, as above, and if the roles differ.
std::vector<Json> train_job_manifests(const Job& job, const ManifestOptions& options);

/// The objects one after the other, as `kubectl create -f -` reads them. Not a List, because
/// kubectl lets the cluster check the fields of single objects only. The text contains the secret.
std::string to_text(const std::vector<Json>& objects);

/// The same to show to people, with "(hidden)" for each text of the Secret.
std::string to_shown_text(std::vector<Json> objects);

/// A sentence about each field of the job that has no effect in Kubernetes.
std::vector<std::string> unused_fields(const Job& job);
/// The same for a TrainJob.
std::vector<std::string> fields_unused_by_train_job(const Job& job);

}  // namespace peal::launch::kubernetes
