#include "peal/launch/submitted/job_hosts.h"

#include <filesystem>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/config/environment.h"
#include "peal/launch/allocation_end.h"
#include "peal/launch/host_plan.h"
#include "peal/rendezvous/slurm_allocation.h"

namespace peal::launch::submitted {
namespace {

rendezvous::SlurmAllocation allocation() {
  auto found = rendezvous::read_slurm_allocation(process_environment());
  if (found) return *std::move(found);
  throw Error(ErrorKind::kUsage,
              "this process is not the batch script of a job of Slurm; submit the job with "
              "peal submit --to slurm");
}

/// Each node of the job has its own node of Slurm. The number of tasks there does not matter.
std::vector<HostSlots> nodes_of_the_allocation() {
  std::vector<HostSlots> hosts;
  for (const rendezvous::AllocatedNode& node : allocation().nodes) {
    hosts.push_back({node.name});
  }
  return hosts;
}

}  // namespace

agents::EngineOptions engine_of(const Job& job,
                                const jobs::Submission& submission,
                                const LauncherOptions& given) {
  agents::EngineOptions engine{.engine = agents::Engine::kThisMachine, .peal = given.peal};
  if (submission.runner == "ssh") engine.engine = agents::Engine::kSsh;
  if (submission.runner == "mpi") engine.engine = agents::Engine::kMpi;
  if (submission.runner == "slurm") {
    engine.engine = agents::Engine::kSlurm;
    engine.components = rendezvous::components_of(allocation());
  }
  if (engine.peal.empty()) engine.peal = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto own = job.engine_options.find(submission.runner);
  const bool is_for_sbatch = engine.engine == agents::Engine::kSlurm;
  if (own != job.engine_options.end() && !is_for_sbatch) {
    engine.options = own->second;
  }
  return engine;
}

std::vector<HostSlots> hosts_for(const Job& job,
                                 const jobs::Submission& submission,
                                 const LauncherOptions& given) {
  if (submission.runner == "slurm") return nodes_of_the_allocation();
  if (!given.hosts.empty()) return given.hosts;
  return {{kDefaultHost, rank_count(job)}};
}

std::optional<TimePoint> end_of_allocation(const Job& job, const jobs::Submission& submission) {
  if (!job.warn_before || submission.runner != "slurm") return std::nullopt;
  const auto left = time_left_of_allocation(process_environment());
  if (!left) return std::nullopt;
  return Clock::now() + *left;
}

int requeues() {
  const auto count = process_environment()("SLURM_RESTART_COUNT");
  return count ? try_parse_number<int>(*count).value_or(0) : 0;
}

}  // namespace peal::launch::submitted
