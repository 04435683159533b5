#include "peal/rendezvous/launcher_environment.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

LauncherEnvironment launch_of(const Variables& variables, const MeetRequest& request = {}) {
  return read_launcher_environment(request, parse_url(request.url), fixed_environment(variables));
}

Identity identity_of(const Variables& variables, const MeetRequest& request = {}) {
  return identify(request, fixed_environment(variables));
}

std::string usage_of(const Variables& variables, const MeetRequest& request = {}) {
  try {
    const Identity identity = identity_of(variables, request);
    ADD_FAILURE() << "accepted as rank " << identity.rank << " of " << identity.world_size;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

const Variables kEnvironmentOf = {
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};

const Variables kTorchrunOf = {{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_PORT", "33159"},
                               {"TORCHELASTIC_RUN_ID", "run"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Variables kOpenMpiOf = {{"OMPI_COMM_WORLD_RANK", "5"},
                              {"OMPI_COMM_WORLD_SIZE", "8"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                              {"PMIX_NAMESPACE", "1034616833"}};

const Variables kMpichOf = {
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};

const Variables kSlurmOf = {{"SLURM_PROCID", "5"},
                            {"SLURM_NTASKS", "9"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_NODEID", "1"},
                            {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                            {"SLURM_STEP_ID", "3"},
                            {"SLURM_JOB_ID", "77"}};

Variables merged(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(LauncherEnvironmentTest, IdentifyReadsTheVariablesOfEveryLauncher) {
  EXPECT_EQ(identity_of(kEnvironmentOf), (Identity{5, 8, 1, 4, "environment"}));
  EXPECT_EQ(identity_of(kTorchrunOf), (Identity{5, 8, 1, 4, "torchrun"}));
  EXPECT_EQ(identity_of(kOpenMpiOf), (Identity{5, 8, 1, 4, "Open MPI"}));
  EXPECT_EQ(identity_of(kMpichOf), (Identity{5, 8, 1, 4, "MPICH"}));
  EXPECT_EQ(identity_of(kSlurmOf), (Identity{5, 8, 1, 4, "Slurm"}));
}

TEST(LauncherEnvironmentTest, AProcessWithoutVariablesIsAlone) {
  EXPECT_EQ(identity_of({}), (Identity{0, 1, 0, 1, "alone"}));
  EXPECT_TRUE(launch_of({}).local_is_known);
}

TEST(LauncherEnvironmentTest, TheInnermostLauncherCounts) {
  EXPECT_EQ(identity_of(merged(kOpenMpiOf, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}})).source,
            "Open MPI");
  EXPECT_EQ(identity_of(merged(kMpichOf, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}})).source,
            "MPICH");
  EXPECT_EQ(identity_of(merged(kSlurmOf, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}})).source, "Slurm");
  EXPECT_EQ(identity_of(merged(kSlurmOf, {{"RANK", "0"}, {"WORLD_SIZE", "2"}})),
            (Identity{0, 2, 0, 2, "environment"}));
  EXPECT_EQ(identity_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), (Identity{1, 2, 1, 2, "MPICH"}));
}

TEST(LauncherEnvironmentTest, ArgumentsComeBeforeTheUrlAndTheUrlBeforeTheEnvironment) {
  const MeetRequest url{.url = "tcp://h:1?rank=1&world_size=3", .rank = {}, .world_size = {}};
  EXPECT_EQ(identity_of(kEnvironmentOf, url), (Identity{1, 3, 1, 3, "arguments"}));
  MeetRequest both = url;
  both.rank = 2;
  EXPECT_EQ(identity_of(kEnvironmentOf, both), (Identity{2, 3, 2, 3, "arguments"}));
  both.world_size = 4;
  EXPECT_EQ(identity_of({}, both), (Identity{2, 4, 2, 4, "arguments"}));
}

TEST(LauncherEnvironmentTest, ArgumentsThatAgreeWithTheLauncherKeepItsLocalRanks) {
  const MeetRequest request{.url = "env://", .rank = 5, .world_size = 8};
  EXPECT_EQ(identity_of(kOpenMpiOf, request), (Identity{5, 8, 1, 4, "arguments"}));
  EXPECT_TRUE(launch_of(kOpenMpiOf, request).local_is_known);
  EXPECT_FALSE(launch_of(kOpenMpiOf, {.url = "env://", .rank = 4, .world_size = 8}).local_is_known);
}

TEST(LauncherEnvironmentTest, TheRankMayBeAnArgumentAndTheWorldSizeAVariable) {
  EXPECT_EQ(identity_of({{"WORLD_SIZE", "4"}}, {.url = "env://", .rank = 2, .world_size = {}}),
            (Identity{2, 4, 2, 4, "arguments"}));
}

TEST(LauncherEnvironmentTest, WithoutLocalRanksAllRanksCountAsLocal) {
  const LauncherEnvironment launch = launch_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(launch.identity, (Identity{1, 2, 1, 2, "environment"}));
  EXPECT_FALSE(launch.local_is_known);
}

TEST(LauncherEnvironmentTest, SlurmsLocalSizeComesFromSeveralVariables) {
  EXPECT_EQ(identity_of(merged(without(kSlurmOf, "SLURM_STEP_TASKS_PER_NODE"),
                               {{"SLURM_TASKS_PER_NODE", "5,3"}}))
                .local_world_size,
            3);
  EXPECT_EQ(identity_of(merged(without(kSlurmOf, "SLURM_STEP_TASKS_PER_NODE"),
                               {{"SLURM_NTASKS_PER_NODE", "2"}}))
                .local_world_size,
            2);
  EXPECT_FALSE(launch_of(without(kSlurmOf, "SLURM_STEP_TASKS_PER_NODE")).local_is_known);
  EXPECT_EQ(identity_of(without(kSlurmOf, "SLURM_STEP_NUM_TASKS")).world_size, 9);
}

TEST(LauncherEnvironmentTest, ABatchScriptOfSlurmIsNotATask) {
  const Variables script = {{"ENVIRONMENT", "BATCH"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(identity_of(script).source, "alone");
  EXPECT_EQ(identity_of(merged(script, {{"SLURM_STEP_ID", "0"}})).source, "Slurm");
}

TEST(LauncherEnvironmentTest, TheJobsNameComesFromTheLauncher) {
  EXPECT_EQ(launch_of(kTorchrunOf).job, "run.33159.2");
  EXPECT_EQ(launch_of(kSlurmOf).job, "77.3");
  EXPECT_EQ(launch_of(kOpenMpiOf).job, "1034616833");
  EXPECT_EQ(
      launch_of(merged(without(kOpenMpiOf, "PMIX_NAMESPACE"), {{"OMPI_MCA_ess_base_jobid", "9"}}))
          .job,
      "9");
  EXPECT_EQ(launch_of(kMpichOf).job, "");
  EXPECT_EQ(launch_of(kEnvironmentOf).job, "");
  EXPECT_EQ(launch_of(merged(kSlurmOf, {{"PEAL_JOB", "mine"}})).job, "mine");
}

TEST(LauncherEnvironmentTest, AProgramThatIsStartedOnceOnEachNodeIsTheRankOfItsNode) {
  const Variables dstack = {{"DSTACK_NODES_NUM", "2"},
                            {"DSTACK_NODE_RANK", "1"},
                            {"DSTACK_MASTER_NODE_IP", "10.0.0.1"}};
  EXPECT_EQ(identity_of(dstack), (Identity{1, 2, 1, 2, "dstack"}));
  const LauncherEnvironment launch = launch_of(dstack);
  EXPECT_EQ(launch.launcher, Launcher::kNodes);
  EXPECT_FALSE(launch.local_is_known);
  EXPECT_EQ(launch.master, "10.0.0.1");
  EXPECT_EQ(launch.master_port, 29500);
  EXPECT_EQ(identity_of(merged(dstack, kSlurmOf)).source, "Slurm");
  EXPECT_EQ(identity_of(merged(dstack, kEnvironmentOf)).source, "environment");
  EXPECT_EQ(identity_of({{"DSTACK_NODES_NUM", "1"}}), (Identity{0, 1, 0, 1, "dstack"}));
}

TEST(LauncherEnvironmentTest, RanksThatAreMissingOnANodeNeedALauncher) {
  const Variables kubeflow = {
      {"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "m"}};
  EXPECT_EQ(identity_of(kubeflow).rank, 1);
  EXPECT_EQ(identity_of(merged(kubeflow, {{"PET_NPROC_PER_NODE", "1"}})).world_size, 2);
  EXPECT_THAT(usage_of(merged(kubeflow, {{"PET_NPROC_PER_NODE", "4"}})),
              AllOf(HasSubstr("PET_NPROC_PER_NODE=4"), HasSubstr("peal run")));
  EXPECT_EQ(identity_of({{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "4"}}).world_size, 1);
}

TEST(LauncherEnvironmentTest, TasksOfSrunMustNotBeWorldsOfTheirOwn) {
  for (const Variables& alone :
       {Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
        Variables{{"MPI_LOCALRANKID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}}) {
    EXPECT_EQ(identity_of(alone).world_size, 1);
    EXPECT_THAT(usage_of(merged(alone, kSlurmOf)), HasSubstr("srun has started 8 tasks"));
  }
}

TEST(LauncherEnvironmentTest, TheErrorNamesAMissingVariable) {
  EXPECT_THAT(usage_of({{"RANK", "1"}}), AllOf(HasSubstr("world size"), HasSubstr("WORLD_SIZE")));
  EXPECT_THAT(usage_of({{"WORLD_SIZE", "2"}}), AllOf(HasSubstr("rank of"), HasSubstr("RANK")));
  EXPECT_THAT(usage_of({{"MASTER_ADDR", "h"}}), HasSubstr("RANK"));
  EXPECT_THAT(usage_of(without(kOpenMpiOf, "OMPI_COMM_WORLD_SIZE")),
              HasSubstr("OMPI_COMM_WORLD_SIZE"));
  EXPECT_THAT(usage_of({}, {.url = "tcp://h:1", .rank = {}, .world_size = {}}), HasSubstr("RANK"));
  EXPECT_THAT(usage_of({}, {.url = "file:///f?rank=0", .rank = {}, .world_size = {}}),
              HasSubstr("WORLD_SIZE"));
}

TEST(LauncherEnvironmentTest, TheErrorNamesAWrongVariableAndItsValue) {
  for (const auto& [name, value] : Variables{{"RANK", "one"},
                                             {"RANK", ""},
                                             {"WORLD_SIZE", "2.5"},
                                             {"LOCAL_RANK", "0x1"},
                                             {"LOCAL_WORLD_SIZE", "many"}}) {
    Variables variables = kEnvironmentOf;
    variables[name] = value;
    EXPECT_THAT(usage_of(variables), HasSubstr(name + "=\"" + value + "\""));
  }
}

TEST(LauncherEnvironmentTest, TheErrorNamesNumbersThatDoNotFitEachOther) {
  EXPECT_THAT(usage_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("RANK=2"), HasSubstr("WORLD_SIZE=2"), HasSubstr("0 to 1")));
  EXPECT_THAT(usage_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=-1"));
  EXPECT_THAT(usage_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(usage_of({}, {.url = "env://", .rank = 3, .world_size = 2}), HasSubstr("rank=3"));
  Variables variables = kEnvironmentOf;
  variables["LOCAL_RANK"] = "4";
  EXPECT_THAT(usage_of(variables), AllOf(HasSubstr("LOCAL_RANK=4"), HasSubstr("LOCAL_WORLD_SIZE")));
}

}  // namespace
}  // namespace peal::rendezvous
