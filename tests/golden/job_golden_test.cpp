// Compares what becomes of the job files in jobs/ with the texts beside them, so that a change of a
// reader or of the plan shows as a diff: the job in peal's own form and the notices (.job.yaml),
// and the plan of its processes on four hosts (.plan.txt). PEAL_TEST_ACCEPT=1 rewrites the texts.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "peal/launch/job/print_job.h"
#include "peal/launch/job/process_plan.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

constexpr const char* kFiles[] = {
    "elastic.yaml", "standard_tier.json", "training_input.yaml", "worker_pools.json"};

class JobGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  static std::string path() { return std::string(PEAL_GOLDEN_FOLDER "/jobs/") + GetParam(); }
  /// "jobs/elastic" + ending
  static std::string beside(std::string_view ending) {
    return path().substr(0, path().rfind('.')) + std::string(ending);
  }
  static std::string text_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static ReadJob given() { return read_job(text_of(path()), GetParam()); }

  static void compare(const std::string& text, const std::string& file) {
    const char* const accept = std::getenv("PEAL_TEST_ACCEPT");
    if (accept != nullptr && std::string_view(accept) == "1") std::ofstream(file) << text;
    EXPECT_EQ(text, text_of(file))
        << "if the change is intended, run again with PEAL_TEST_ACCEPT=1";
  }
};

TEST_P(JobGoldenTest, AJobFileBecomesTheAcceptedJob) {
  const ReadJob read = given();
  std::string text;
  for (const std::string& notice : read.notices) text += "# " + notice + "\n";
  compare(text + print_job(read.job), beside(".job.yaml"));
}

TEST_P(JobGoldenTest, TheAcceptedJobIsThatOfTheFile) {
  EXPECT_EQ(read_job(text_of(beside(".job.yaml")), "x.yaml").job, given().job);
}

TEST_P(JobGoldenTest, AJobFileBecomesTheAcceptedPlan) {
  const Job job = given().job;
  const std::vector<JobHost> hosts = {{"h0", 1}, {"h1", 1}, {"h2", 2}, {"h3", 2}};
  const MasterAddress master{"h0", 29500};
  compare(to_text(plan_processes(job, hosts, master), job, master), beside(".plan.txt"));
}

INSTANTIATE_TEST_SUITE_P(Files, JobGoldenTest, testing::ValuesIn(kFiles), [](const auto& test) {
  const std::string name = test.param;
  return name.substr(0, name.find('.'));
});

}  // namespace
}  // namespace peal::launch
