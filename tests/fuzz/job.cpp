// Job files in all forms, and the values of gcloud's flags.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/launch/job/gcloud_flags.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job/process_plan.h"
#include "peal/launch/job/read_job.h"

#include "tests/fuzz/fuzz.h"

namespace {

using namespace peal;
using namespace peal::launch;

constexpr int kMostPlanned = 40;  // larger plans take long

void check_plan(const Job& job) {
  std::vector<JobHost> hosts;
  for (int i = 0; i < node_count(job) + job.spare_nodes; ++i) {
    hosts.push_back({fmt::format("h{}", i), 1});
  }
  const MasterAddress master{"h0", 29500};
  const auto plan =
      fuzz::unless_refused(ErrorKind::kUsage, [&] { return plan_processes(job, hosts, master); });
  if (!plan) return;
  fuzz::require(static_cast<int>(plan->processes.size()) == rank_count(job), "all are planned");
  fuzz::require(static_cast<int>(plan->spare_hosts.size()) == job.spare_nodes, "spares stay free");
  fuzz::require(!to_text(*plan, job, master).empty(), "a plan has a text");
}

void check_job(const ReadJob& read) {
  check(read.job);
  const ReadJob again = read_job(print_job(read.job), "printed.yaml");
  fuzz::require(again.job == read.job, "a printed job is read back");
  fuzz::require(again.notices.empty(), "a printed job has no fields without a meaning");
  if (rank_count(read.job) + read.job.spare_nodes <= kMostPlanned) check_plan(read.job);
}

void check_flags(std::string_view value) {
  for (const GcloudFlag& flag : gcloud_flags()) {
    const std::vector<GivenFlag> flags = {
        {&flag, std::string(value)},
        {gcloud_flag(flag.training.empty() ? "--worker-pool-spec" : "--master-image-uri"),
         "container-image-uri=t"}};
    const auto read = fuzz::unless_refused(
        ErrorKind::kUsage, [&] { return read_job(with_flags({}, "", flags).document, "flags"); });
    if (read) check_job(*read);
  }
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  const auto read = unless_refused(ErrorKind::kUsage, [&] { return read_job(input, "job.yaml"); });
  if (read) check_job(*read);
  if (input.size() <= 100) check_flags(input);
}
