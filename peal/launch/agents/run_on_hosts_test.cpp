#include "peal/launch/agents/run_on_hosts.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/temporary_folder.h"
#include "peal/launch/agents/host_facts.h"
#include "peal/launch/agents/machine_variables.h"

namespace peal::launch::agents {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

Ready reached_at(const std::string& address, const std::string& launcher = "") {
  return {.address = address, .launcher_address = launcher};
}

TEST(RunOnHostsTest, RanksMeetWhereTheFirstHostIsReached) {
  EXPECT_EQ(address_of_rank_0({reached_at("10.0.0.2", "10.0.0.1"), reached_at("10.0.0.3")}),
            "10.0.0.2");
}

TEST(RunOnHostsTest, IfTheFirstHostIsTheLaunchersMachineAnotherHostKnowsItsAddress) {
  EXPECT_EQ(address_of_rank_0({reached_at(""), reached_at("10.0.0.3", "10.0.0.1")}), "10.0.0.1");
  EXPECT_EQ(address_of_rank_0({reached_at("127.0.0.1", "127.0.0.1"),
                               reached_at("::1", "::1"),
                               reached_at("fd00::3", "fd00::1")}),
            "fd00::1");
}

TEST(RunOnHostsTest, IfAllHostsAreTheLaunchersMachineRanksMeetAtLoopback) {
  EXPECT_EQ(address_of_rank_0({reached_at(""), reached_at("")}), "127.0.0.1");
}

TEST(RunOnHostsTest, AddressesComeFromTheVariableOfSshd) {
  const SshAddresses found = parse_ssh_connection("10.0.0.1 50022 10.0.0.2 22");
  EXPECT_EQ(found.launcher, "10.0.0.1");
  EXPECT_EQ(found.host, "10.0.0.2");
  EXPECT_EQ(parse_ssh_connection("10.0.0.1 50022").host, "");
  EXPECT_EQ(parse_ssh_connection("").launcher, "");
}

TEST(RunOnHostsTest, VariablesOfALoginStayOnTheirMachine) {
  const Variables all = {{"HOME", "/root"},
                         {"SSH_AUTH_SOCK", "/tmp/x"},
                         {"PATH", "/bin"},
                         {"_", "/bin/env"},
                         {"HOMER", "1"}};
  EXPECT_THAT(part_of(all, Part::kJob),
              UnorderedElementsAre(Pair("PATH", "/bin"), Pair("HOMER", "1")));
  EXPECT_THAT(part_of(all, Part::kMachine),
              UnorderedElementsAre(
                  Pair("HOME", "/root"), Pair("SSH_AUTH_SOCK", "/tmp/x"), Pair("_", "/bin/env")));
}

TEST(RunOnHostsTest, VariablesOfTheAgentsTaskAreNotThoseOfARank) {
  EXPECT_TRUE(describes_agents_task("SLURM_PROCID"));
  EXPECT_TRUE(describes_agents_task("SLURM_STEP_NUM_TASKS"));
  EXPECT_FALSE(describes_agents_task("SLURMD_NODENAME"));
  EXPECT_FALSE(describes_agents_task("SLURM_JOB_ID"));
  EXPECT_TRUE(limits_each_task("SLURM_GPUS_PER_TASK"));
  EXPECT_TRUE(limits_each_task("SLURM_NTASKS_PER_NODE"));
  EXPECT_FALSE(limits_each_task("SLURM_JOB_NODELIST"));
}

const AgentsOptions kBySrun{
    .engine = {.engine = Engine::kSlurm, .peal = "peal"}, .begin = {}, .version = "1"};

/// A program `srun` on PATH with this script.
class StandInForSrun final {
 public:
  explicit StandInForSrun(const std::string& script) {
    const std::filesystem::path srun = folder_.path() / "srun";
    std::ofstream(srun) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(srun, std::filesystem::perms::owner_all);
  }

 private:
  const TemporaryFolder folder_;
  const ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
};

TEST(RunOnHostsTest, SlurmMayHaveEndedAnAgentThatHasNotAnsweredYet) {
  const StandInForSrun srun("exit 143");
  SignalReader signals;
  Agents agents(kBySrun, signals);
  LaunchOptions options;
  options.hosts = {{"n1", 1}};
  ASSERT_EQ(connect(agents, options, signals), 0);
  const auto refusal = refusal_of(agents);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_TRUE(end_of(*refusal, 0).may_be_preempted);
  EXPECT_TRUE(may_be_preempted(agents)) << "for an elastic job";
}

TEST(RunOnHostsTest, ASignalEndsTheWaitForHosts) {
  const StandInForSrun srun("exec sleep 1000");
  SignalReader signals;
  Agents agents(kBySrun, signals);
  LaunchOptions options;
  options.hosts = {{"n1", 1}};
  ::raise(SIGINT);
  EXPECT_EQ(connect(agents, options, signals), SIGINT);
  agents.leave(0, "the test ends");
}

TEST(RunOnHostsTest, SlurmHasNotEndedAnAgentThatHasReportedNoSignal) {
  const StandInForSrun srun("exec sleep 1000");
  SignalReader signals;
  Agents agents(kBySrun, signals);
  agents.add("n1");
  EXPECT_FALSE(may_be_preempted(agents));
  agents.host(0).note_ending("SIGTERM");
  EXPECT_TRUE(may_be_preempted(agents));
  agents.leave(0, "the test ends");
}

TEST(RunOnHostsTest, AnEngineThatThisMachineLacksIsReportedOnce) {
  const TemporaryFolder empty;
  const ScopedVariable path("PATH", empty.path().string());
  Agents agents({.engine = {.engine = Engine::kMpi, .peal = "/p"}, .begin = {}, .version = "0"});
  LaunchOptions options;
  options.hosts = {{"n1", 1}, {"n2", 1}};
  options.ranks = 2;
  const auto refusal = connect(agents, options);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->text,
            "no rank was started: there is no mpirun on this machine: install it, or add its "
            "folder to PATH\n");
}

TEST(RunOnHostsTest, OtherHostsReplaceRefusedOnesAfterTheFirstAttempt) {
  const Refusal refusal{.text = "", .exit_code = 126, .hosts = {{"n1", "no such file"}}};
  EXPECT_EQ(end_of(refusal, 0).next, AfterAttempt::kEnd);
  EXPECT_EQ(end_of(refusal, 1).next, AfterAttempt::kRetry);
  EXPECT_EQ(end_of(refusal, 1).exit_code, 126);
  EXPECT_THAT(end_of(refusal, 1).lost, ElementsAre(Pair("n1", "no such file")));
}

TEST(RunOnHostsTest, EachRankGetsTheEnvironmentAndTheCoresOfItsHost) {
  LaunchOptions options;
  options.command = {"train"};
  options.ranks = 3;
  options.hosts = {{"n1", 2}, {"n2", 1}};
  const std::map<std::string, Ready> facts = {
      {"n1",
       {.commands = {{"/n1/train", {"train"}}},
        .own = {{"HOME", "/h1"}},
        .cores = {{{0}}, {{1}}},
        .records = "/r1"}},
      {"n2",
       {.commands = {{"/n2/train", {"python3", "train"}}},
        .own = {{"HOME", "/h2"}},
        .cores = {{{0}}, {{1}}, {{2}}, {{3}}},
        .records = ""}},
  };
  const auto ranks = plan_ranks_on_hosts(options,
                                         {.id = "j", .host = "10.0.0.2", .port = 4711},
                                         facts,
                                         {{"HOME", "/home/me"}, {"PATH", "/bin"}});
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[1].host, "n1");
  EXPECT_EQ(ranks[1].program, "/n1/train");
  EXPECT_THAT(ranks[1].cpus, ElementsAre(1));
  EXPECT_EQ(ranks[1].environment.at("HOME"), "/h1");
  EXPECT_EQ(ranks[1].environment.at("PATH"), "/bin");
  EXPECT_EQ(ranks[1].environment.at("RANK"), "1");
  EXPECT_EQ(ranks[1].environment.at("MASTER_ADDR"), "10.0.0.2");
  EXPECT_EQ(ranks[1].environment.at("PEAL_FLIGHT_DIR"), "/r1");
  EXPECT_EQ(ranks[2].host, "n2");
  EXPECT_THAT(ranks[2].arguments, ElementsAre("python3", "train"));
  EXPECT_THAT(ranks[2].cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ranks[2].environment.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(ranks[2].environment.at("LOCAL_RANK"), "0");
  EXPECT_EQ(ranks[2].environment.at("HOME"), "/h2");
  EXPECT_FALSE(ranks[2].environment.contains("PEAL_FLIGHT_DIR"));
}

}  // namespace
}  // namespace peal::launch::agents
