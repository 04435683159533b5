#include "peal/cli/job_runner.h"

#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/jobs/job_folder.h"
#include "peal/launch/kubernetes/kubernetes_runner.h"
#include "peal/launch/slurm/slurm_runner.h"
#include "peal/launch/submitted/launched_runner.h"
#include "peal/launch/submitted/launcher_options.h"

namespace peal::cli {
namespace {

constexpr const char* kTrainJob = "--train-job";  // the other options are kubectl's

std::unique_ptr<launch::Runner> kubernetes_runner(const launch::jobs::Submission& submission) {
  launch::kubernetes::KubernetesOptions options;
  for (const std::string& option : submission.runner_options) {
    if (option == kTrainJob) {
      options.form = launch::kubernetes::Form::kTrainJob;
    } else {
      options.kubectl.push_back(option);
    }
  }
  return launch::kubernetes::make_kubernetes_runner(std::move(options));
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::unique_ptr<launch::Runner> make_runner(const launch::jobs::Submission& submission) {
  if (submission.runner == "kubernetes") return kubernetes_runner(submission);
  if (submission.runner == "slurm") {
    const auto given = launch::submitted::decode_launcher_options(submission.runner_options);
    return launch::slurm::make_slurm_runner(launch::jobs::jobs_directory(),
                                            given.peal.empty() ? own_path() : given.peal);
  }
  if (submission.runner == "local" || submission.runner == "ssh" || submission.runner == "mpi") {
    return launch::submitted::make_launched_runner(launch::jobs::jobs_directory(), own_path());
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("this peal has no runner {}", quoted_beginning(submission.runner)));
}

}  // namespace peal::cli
