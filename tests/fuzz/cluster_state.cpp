// The answers of kubectl about a job.
#include "peal/launch/kubernetes/cluster_state.h"

#include <string>
#include <vector>

#include "peal/launch/kubernetes/pod_logs.h"

#include "tests/fuzz/fuzz.h"

namespace {

using namespace peal;
using namespace peal::launch;

void check_jobs(const std::vector<kubernetes::RoleJob>& jobs) {
  const JobStatus status = status_of("job", jobs);
  fuzz::require(!name_of(status.state).empty(), "a state has a name");
  std::size_t nodes = 0;
  for (const kubernetes::RoleJob& job : jobs) nodes += job.pods.size();
  fuzz::require(status.nodes.size() == nodes, "each node has a status");
  fuzz::unless_refused(ErrorKind::kUsage, [&] { return log_sources(jobs, {}); });
  fuzz::unless_refused(ErrorKind::kUsage,
                       [&] { return sources_to_follow(jobs, {.rank = 1, .attempt = 1}); });
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  auto jobs =
      unless_refused(ErrorKind::kResource, [&] { return kubernetes::read_role_jobs(input); });
  if (jobs && !jobs->empty()) check_jobs(*jobs);
  std::vector<kubernetes::RoleJob> none;
  const auto is_train_job =
      unless_refused(ErrorKind::kResource, [&] { return read_train_job(input, none); });
  if (is_train_job.value_or(false)) check_jobs(none);
}
