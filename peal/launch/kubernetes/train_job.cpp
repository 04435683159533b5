// The TrainJob of Kubeflow's Trainer. Its controller makes the pods, by a runtime that the
// administrator of the cluster has installed, and tells each its place in PET_*, as torchrun reads
// it.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/check_job.h"
#include "peal/launch/kubernetes/manifests.h"
#include "peal/launch/kubernetes/names.h"
#include "peal/launch/kubernetes/pod_parts.h"
#include "peal/launch/kubernetes/variables.h"

namespace peal::launch::kubernetes {
namespace {

// Of the schema of a TrainJob: kubeflow/trainer, pkg/apis/trainer/v1alpha1/trainjob_types.go.
constexpr std::size_t kMostVariables = 128;
constexpr std::size_t kMostWords = 128;  // of command, and of args
constexpr std::size_t kLongestWord = 65536;
constexpr std::size_t kLongestImage = 500;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::kUsage, text); }

bool are_alike(Role a, const Role& b) {
  a.name = b.name;
  a.nodes = b.nodes;
  return a == b;
}

/// The fields of the job that a TrainJob cannot express.
void check_for_train_job(const Job& job) {
  check_for_kubernetes(job);
  for (const Role& role : job.roles) {
    if (!are_alike(role, job.roles.front())) {
      refuse(
          fmt::format("a TrainJob has one kind of node, and the roles \"{}\" and \"{}\" differ: "
                      "give them the same image, command, environment and resources, or submit "
                      "the job without the form TrainJob",
                      job.roles.front().name,
                      role.name));
    }
  }
  const Role& role = job.roles.front();
  if (role.command.empty()) {
    refuse(
        fmt::format("role \"{}\" has no command: give it the command of its image, because a "
                    "shell in the container has to translate the variables of the TrainJob",
                    role.name));
  }
  if (!job.directory.empty()) {
    refuse(
        "a TrainJob has no field for the directory: use the image's, or change the directory "
        "in the command");
  }
  // In the managed forms, the user cannot choose these two.
  if (job.form != JobForm::kPeal) return;
  if (!job.success_role.empty() && job.roles.size() > 1) {
    refuse(
        fmt::format("a TrainJob succeeds when all its nodes do, and the job names success_role "
                    "\"{}\": submit the job without the form TrainJob",
                    job.success_role));
  }
  if (job.restarts.most > 0) {
    refuse(
        "the runtime of a TrainJob decides about restarts: remove restarts from the job, and "
        "choose a runtime that restarts");
  }
}

/// Refuses what the API server would refuse after the Secret was made.
void check_sizes(const Role& role, const Process& process) {
  if (process.env.size() > kMostVariables) {
    refuse(
        fmt::format("a TrainJob has at most {} variables, and this one has {}, with those that "
                    "peal sets: remove some variables from the job",
                    kMostVariables,
                    process.env.size()));
  }
  if (role.image.size() > kLongestImage) {
    refuse(
        fmt::format("the image name of a TrainJob has at most {} characters, and this one has {}: "
                    "give the image a shorter name",
                    kLongestImage,
                    role.image.size()));
  }
  for (const std::vector<std::string>& words : {process.command, process.args}) {
    if (words.size() > kMostWords) {
      refuse(
          fmt::format("the command and the arguments of a TrainJob have at most {} words each, "
                      "and peal adds a few: put the rest into a file that the program reads",
                      kMostWords));
    }
    if (std::ranges::any_of(words, [](const auto& word) { return word.size() > kLongestWord; })) {
      refuse(
          fmt::format("a word of the command of a TrainJob has at most {} characters: put it "
                      "into a file that the program reads",
                      kLongestWord));
    }
  }
}

Json trainer(const Job& job, const Process& process) {
  const Role& role = job.roles.front();
  Json result = {{"image", role.image}, {"numNodes", node_count(job)}};
  result["numProcPerNode"] = role.ranks_per_node;
  set_process(result, process);
  if (const Json needs = resources(role.resources); !needs.empty()) {
    result["resourcesPerNode"] = needs;
  }
  return result;
}

}  // namespace

std::vector<std::string> fields_unused_by_train_job(const Job& job) {
  std::vector<std::string> sentences = unused_fields(job);
  if (job.form == JobForm::kPeal) return sentences;
  if (job.restarts.most > 0) {
    sentences.emplace_back(
        "the restarts of a managed job are not used: the runtime of a TrainJob decides about them");
  }
  if (job.roles.size() > 1) {
    sentences.push_back(
        fmt::format("the end of {} does not end the job: a TrainJob succeeds when all its nodes do",
                    job.success_role));
  }
  return sentences;
}

std::vector<Json> train_job_manifests(const Job& job, const ManifestOptions& options) {
  check_for_train_job(job);
  const Process process = process_of_train_job(node_groups(job).front(), options);
  check_sizes(job.roles.front(), process);
  Json object = {{"apiVersion", "trainer.kubeflow.org/v1alpha1"}, {"kind", "TrainJob"}};
  object["metadata"] = metadata(job_name(options.id), job, options);
  object["spec"] = {{"runtimeRef",
                     {{"apiGroup", "trainer.kubeflow.org"},
                      {"kind", "ClusterTrainingRuntime"},
                      {"name", options.runtime}}}};
  if (job.max_run_time) object["spec"]["activeDeadlineSeconds"] = job.max_run_time->count();
  object["spec"]["trainer"] = trainer(job, process);
  return {secret(job, options, {process}), object};
}

}  // namespace peal::launch::kubernetes
