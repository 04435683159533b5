#include "peal/launch/job/job.h"

#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Role usual_role(const std::string& name) { return {.name = name, .command = {"./train"}}; }

Job right_job() { return {.name = "mnist", .roles = {usual_role("master"), usual_role("worker")}}; }

/// The message of `check` after a change of a correct job; "" if there is no error.
std::string check_problem(const std::function<void(Job&)>& change) {
  Job changed = right_job();
  change(changed);
  try {
    check(changed);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.message());
  }
}

TEST(JobTest, NodesAndRanksAreThoseOfAllRolesAtMost) {
  Job counted = right_job();
  counted.roles[1].nodes = {2, 5};
  counted.roles[1].ranks_per_node = 4;
  EXPECT_EQ(node_count(counted), 6);
  EXPECT_EQ(rank_count(counted), 21);
  check(counted);
}

TEST(JobTest, ARoleNeedsACommandOrAnImage) {
  EXPECT_EQ(check_problem([](Job& j) {
              j.roles[0].command.clear();
              j.roles[0].image = "torch";
            }),
            "");
  EXPECT_THAT(check_problem([](Job& j) { j.roles[1].command.clear(); }),
              StartsWith("roles[1]: it needs a command"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[1].command = {""}; }),
              StartsWith("roles[1].command: its first word"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles.clear(); }), StartsWith("roles: "));
}

TEST(JobTest, NamesOfRolesAreWordsAndDiffer) {
  EXPECT_THAT(check_problem([](Job& j) { j.roles[1].name = "master"; }),
              HasSubstr("two roles have the name master"));
  for (const char* const name : {"", "a b", "9", "-a", "a-", "a_b", "a.b", "\xc3\xa4"}) {
    EXPECT_THAT(check_problem([&](Job& j) { j.roles[0].name = name; }),
                StartsWith("roles[0].name: "))
        << name;
  }
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].name = std::string(41, 'a'); }),
              StartsWith("roles[0].name: "));
}

TEST(JobTest, CountsHaveBounds) {
  EXPECT_THAT(check_problem([](Job& j) {
                j.roles[0].nodes = {4, 1};
              }),
              HasSubstr("4:1 has more nodes at least than at most"));
  EXPECT_THAT(check_problem([](Job& j) {
                j.roles[0].nodes = {0, 1};
              }),
              StartsWith("roles[0].nodes"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].ranks_per_node = 0; }),
              StartsWith("roles[0].ranks_per_node"));
  EXPECT_THAT(check_problem([](Job& j) {
                j.roles[0].nodes = {1, kMostJobNodes};
              }),
              StartsWith("the nodes of all roles"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].ranks_per_node = kMostJobRanks; }),
              StartsWith("the ranks of all roles"));
  EXPECT_THAT(check_problem([](Job& j) { j.spare_nodes = -1; }), StartsWith("spare_nodes"));
  EXPECT_THAT(check_problem([](Job& j) { j.restarts.most = -1; }), StartsWith("restarts.most"));
}

TEST(JobTest, ResourcesAreNumbersThatFitEachOther) {
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].resources.cpus = 0; }),
              HasSubstr("resources.cpus"));
  EXPECT_THAT(check_problem([](Job& j) {
                j.roles[0].resources.cpus = std::numeric_limits<double>::quiet_NaN();
              }),
              HasSubstr("resources.cpus"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].resources.gpus = -1; }),
              HasSubstr("resources.gpus"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].resources.memory = 0_B; }),
              HasSubstr("resources.memory"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].resources = {.memory = 1_MiB, .shm = 2_MiB}; }),
              HasSubstr("2 MiB is more than the memory of the node (1 MiB)"));
}

TEST(JobTest, VariablesThatPealSetsAreRefused) {
  EXPECT_THAT(check_problem([](Job& j) { j.env["RANK"] = "0"; }),
              StartsWith("env.RANK: peal sets"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].env["MASTER_PORT"] = "1"; }),
              StartsWith("roles[0].env.MASTER_PORT: "));
  EXPECT_THAT(check_problem([](Job& j) { j.env["A=B"] = ""; }),
              HasSubstr("\"A=B\" cannot be the name"));
  EXPECT_THAT(check_problem([](Job& j) { j.env[""] = ""; }), StartsWith("env: "));
  EXPECT_EQ(check_problem([](Job& j) { j.env["name.with.dots"] = ""; }), "");
}

TEST(JobTest, LabelsOfPealAreRefused) {
  EXPECT_EQ(check_problem([](Job& j) { j.labels["pealing"] = "a"; }), "");
  EXPECT_THAT(check_problem([](Job& j) { j.labels["peal.job"] = "a"; }),
              StartsWith("labels: names that begin with peal. are peal's own"));
}

TEST(JobTest, TextsAreUtf8WithoutNul) {
  EXPECT_THAT(check_problem([](Job& j) { j.env["A"] = std::string("a\0b", 3); }),
              StartsWith("env.A: it contains a NUL"));
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].args = {"\xff"}; }),
              StartsWith("roles[0].args[0]: it is not UTF-8"));
  EXPECT_THAT(check_problem([](Job& j) { j.name = "a\nb"; }), StartsWith("name: "));
  EXPECT_THAT(check_problem([](Job& j) { j.name = ""; }), StartsWith("name: "));
}

TEST(JobTest, TheSuccessRoleExists) {
  EXPECT_EQ(check_problem([](Job& j) { j.success_role = "worker"; }), "");
  EXPECT_THAT(check_problem([](Job& j) { j.success_role = "chief"; }),
              HasSubstr("there is no role \"chief\", only master, worker"));
}

TEST(JobTest, RolesOutsideTheWorldComeLast) {
  EXPECT_EQ(check_problem([](Job& j) { j.roles[1].in_world = false; }), "");
  EXPECT_THAT(check_problem([](Job& j) { j.roles[0].in_world = false; }), HasSubstr("roles[1]"));
  EXPECT_THAT(check_problem([](Job& j) {
                j.roles.pop_back();
                j.roles[0].in_world = false;
              }),
              StartsWith("roles[0].in_world"));
}

TEST(JobTest, TimesHaveBounds) {
  using namespace std::chrono_literals;
  EXPECT_THAT(check_problem([](Job& j) { j.max_run_time = 0s; }), StartsWith("max_run_time"));
  EXPECT_THAT(
      check_problem([](Job& j) { j.warn_before = 5s; }),
      StartsWith(
          "warn_before: it is a time before the end of max_run_time: give max_run_time too"));
  EXPECT_THAT(check_problem([](Job& j) {
                j.max_run_time = 5s;
                j.warn_before = 6s;
              }),
              StartsWith("warn_before: it is from 1s to max_run_time"));
  EXPECT_THAT(check_problem([](Job& j) { j.start_timeout = 0s; }), StartsWith("start_timeout"));
  EXPECT_THAT(check_problem([](Job& j) { j.grace = -1ms; }), StartsWith("grace"));
  EXPECT_THAT(check_problem([](Job& j) { j.restarts.first_pause = 2min; }),
              StartsWith("restarts.first_pause: it is longer"));
}

TEST(JobTest, FilesHaveTwoPathsAndDoNotOverwriteEachOther) {
  EXPECT_THAT(check_problem([](Job& j) { j.files = {{"a", ""}}; }), StartsWith("files[0]: "));
  EXPECT_THAT(check_problem([](Job& j) {
                j.files = {{"a", "x"}, {"b", "x"}};
              }),
              StartsWith("files[1].to: two files go to x"));
}

TEST(JobTest, TheDocumentOfAManagedFormIsJson) {
  EXPECT_EQ(check_problem([](Job& j) { j.document = "x"; }), "");
  EXPECT_THAT(check_problem([](Job& j) { j.form = JobForm::kTrainingInput; }),
              StartsWith("document: it is not JSON"));
}

TEST(JobTest, OptionsAreForARunnerThatExists) {
  EXPECT_EQ(check_problem([](Job& j) { j.engine_options["slurm"] = {"--partition=gpu"}; }), "");
  EXPECT_THAT(check_problem([](Job& j) { j.engine_options["slrum"] = {}; }),
              HasSubstr("did you mean slurm?"));
}

}  // namespace
}  // namespace peal::launch
