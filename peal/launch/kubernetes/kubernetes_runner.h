// Runs jobs in Kubernetes by the real kubectl, with the user's own configuration of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/runner.h"

namespace peal::launch::kubernetes {

/// The objects that describe a job to the cluster.
enum class Form : unsigned char {
  kIndexedJobs,  // of Kubernetes itself
  kTrainJob,     // of Kubeflow's Trainer, which the cluster must have
};

struct KubernetesOptions {
  /// The program, and the options before each of its commands: {"kubectl", "--context=prod"}. A
  /// caller adds Job::engine_options["kubernetes"] here, for all calls about that job.
  std::vector<std::string> kubectl = {"kubectl"};
  std::string job_namespace{};                // empty: that of kubectl's configuration
  Form form = Form::kIndexedJobs;             // for start; the other calls find out
  std::string runtime = "torch-distributed";  // of a TrainJob
  Timeout patience{30'000};                   // for each answer of kubectl
};

/// Status and logs also end roles that Kubernetes does not end. When the result of the job is
/// known, they ask the nodes of the other roles to end (by suspending their Indexed Jobs). After
/// its end, a job remains in the cluster with its logs until it is cancelled. Cost: each call
/// starts kubectl once or twice; following logs starts one kubectl for each node,
///   and asks for the state once a second.
std::unique_ptr<Runner> make_kubernetes_runner(KubernetesOptions options);

}  // namespace peal::launch::kubernetes
