// CLUSTER_SPEC and TF_CONFIG: the variables by which the managed services describe the nodes of a
// job. Called by process_plan.cpp.
// Source: the services' pages about distributed training; values in logs of their users.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peal/launch/job/job.h"

namespace peal::launch {

/// The addresses of the nodes, and the texts that all nodes share.
class ClusterSpec final {
 public:
  /// `addresses[r]`: "host:2222" of each node of role r. The job has a managed form.
  ClusterSpec(const Job& job, std::vector<std::vector<std::string>> addresses);

  /// The two variables of a node: the `place`-th of the role with this index.
  ///   AI Platform:
  ///     CLUSTER_SPEC={"cluster":{"master":["h0:2222"],"worker":["h1:2222"]},"environment":"cloud",
  ///                   "task":{"type":"worker","index":0},"job":{trainingInput}}
  ///     TF_CONFIG: the same without evaluators in the cluster, with "chief" for "master" if
  ///                useChiefInTfConfig is true, and with "cloud" in the task
  ///   Vertex AI: the roles are workerpool0 .. 3, in TF_CONFIG chief, worker, ps and evaluator;
  ///   "job"
  ///     is a text with JSON.
  std::map<std::string, std::string> variables(std::size_t role, int place) const;

 private:
  std::string tf_name(const std::string& role) const;

  const Job& job_;
  bool uses_chief_ = false;
  // JSON, all but the task.
  std::string cluster_;
  std::string tf_cluster_;
  std::string described_;  // "job"
};

}  // namespace peal::launch
