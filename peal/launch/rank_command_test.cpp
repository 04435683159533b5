#include "peal/launch/rank_command.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/launch/inherited.h"

namespace peal::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

const JobContext kJob{.id = "f00d", .secret = Secret("hush"), .port = 4711};

LaunchOptions two_ranks() {
  LaunchOptions options;
  options.command = {"train", "--epochs", "5"};
  options.ranks = 2;
  return options;
}

TEST(RankCommandTest, ARankFindsItsRankAndTheAddressOfItsPeers) {
  const Variables variables = make_environment(two_ranks(), kJob, 1, 3, {});
  const Variables expected = {{"RANK", "1"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"GROUP_RANK", "0"},
                              {"GROUP_WORLD_SIZE", "1"},
                              {"NODE_RANK", "0"},
                              {"HOROVOD_RANK", "1"},
                              {"HOROVOD_SIZE", "2"},
                              {"HOROVOD_LOCAL_RANK", "1"},
                              {"HOROVOD_LOCAL_SIZE", "2"},
                              {"HOROVOD_CROSS_RANK", "0"},
                              {"HOROVOD_CROSS_SIZE", "1"},
                              {"HOROVOD_HOSTNAME", "localhost"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", "4711"},
                              {"PEAL_JOB", "f00d"},
                              {"PEAL_SECRET", "hush"},
                              {"OMP_NUM_THREADS", "3"},
                              {"PYTHONUNBUFFERED", "1"},
                              {"PEAL_LAUNCHED", variables.at("PEAL_LAUNCHED")}};
  EXPECT_EQ(variables, expected);
  EXPECT_EQ(relation(fixed_environment(variables), 1, 2), Relation::kRank);
}

TEST(RankCommandTest, LocalAndCrossRanksFollowTheHosts) {
  LaunchOptions options = two_ranks();
  options.ranks = 3;
  options.hosts = {{"localhost", 2}, {"127.0.0.1", 2}};
  const Variables variables = make_environment(options, kJob, 2, 1, {{"HOROVOD_RANK", "9"}});
  for (const auto& [name, value] : Variables{{"RANK", "2"},
                                             {"WORLD_SIZE", "3"},
                                             {"LOCAL_RANK", "0"},
                                             {"LOCAL_WORLD_SIZE", "1"},
                                             {"GROUP_RANK", "1"},
                                             {"GROUP_WORLD_SIZE", "2"},
                                             {"HOROVOD_RANK", "2"},
                                             {"HOROVOD_SIZE", "3"},
                                             {"HOROVOD_LOCAL_RANK", "0"},
                                             {"HOROVOD_LOCAL_SIZE", "1"},
                                             {"HOROVOD_CROSS_RANK", "1"},
                                             {"HOROVOD_CROSS_SIZE", "2"},
                                             {"HOROVOD_HOSTNAME", "127.0.0.1"}}) {
    EXPECT_THAT(variables, Contains(Pair(name, value)));
  }
}

LaunchOptions node_1_of_3() {
  LaunchOptions options = two_ranks();
  options.node = {.nodes = 3, .node = 1, .master = "m", .port = 29500, .source = "the test"};
  return options;
}

TEST(RankCommandTest, TheRanksOfANodeAreNumberedAfterThoseOfTheNodesBeforeIt) {
  const LaunchOptions options = node_1_of_3();
  const JobContext job = make_job_context(options.node).job;
  const auto ranks = plan_ranks(options, job, "/opt/train", divide_cores({{{0}}, {{1}}}, 2), {});
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 2);
  EXPECT_EQ(ranks[1].rank, 3);
  EXPECT_THAT(ranks[1].cpus, ElementsAre(1));
  for (const auto& [name, value] : Variables{{"RANK", "3"},
                                             {"WORLD_SIZE", "6"},
                                             {"LOCAL_RANK", "1"},
                                             {"LOCAL_WORLD_SIZE", "2"},
                                             {"GROUP_RANK", "1"},
                                             {"GROUP_WORLD_SIZE", "3"},
                                             {"NODE_RANK", "1"},
                                             {"HOROVOD_RANK", "3"},
                                             {"HOROVOD_SIZE", "6"},
                                             {"HOROVOD_LOCAL_RANK", "1"},
                                             {"HOROVOD_LOCAL_SIZE", "2"},
                                             {"HOROVOD_CROSS_RANK", "1"},
                                             {"HOROVOD_CROSS_SIZE", "3"},
                                             {"MASTER_ADDR", "m"},
                                             {"MASTER_PORT", "29500"}}) {
    EXPECT_THAT(ranks[1].environment, Contains(Pair(name, value)));
  }
  EXPECT_EQ(relation(fixed_environment(ranks[1].environment), 3, 6), Relation::kRank);
}

TEST(RankCommandTest, AllNodesMakeTheSameJobAndNoSecret) {
  rendezvous::NodePlace place = node_1_of_3().node;
  const JobContext one = make_job_context(place).job;
  place.node = 2;
  place.master = "localhost";  // as some launchers call it on the node itself
  EXPECT_EQ(make_job_context(place).job.id, one.id);
  place.job = "4711.0";
  EXPECT_NE(make_job_context(place).job.id, one.id);
  EXPECT_EQ(make_job_context(place, "mine").job.id, "mine");
  EXPECT_TRUE(one.secret.empty());
  EXPECT_THAT(make_environment(node_1_of_3(), one, 2, 1, {}), Not(Contains(Key("PEAL_SECRET"))));
}

TEST(RankCommandTest, OneNodeWithAPortMeetsThere) {
  const JobContext job = make_job_context({.port = 29511}).job;
  EXPECT_EQ(job.host, "127.0.0.1");
  EXPECT_EQ(job.port, 29511);
  EXPECT_FALSE(job.secret.empty());
}

TEST(RankCommandTest, RanksOfTwoHostsOnThisMachineAreBoundToDifferentCores) {
  LaunchOptions options = two_ranks();
  options.hosts = {{"localhost", 1}, {"127.0.0.1", 1}};
  const auto ranks = plan_ranks(options, kJob, "/opt/train", divide_cores({{{0}}, {{1}}}, 2), {});
  EXPECT_THAT(ranks[0].cpus, ElementsAre(0));
  EXPECT_THAT(ranks[1].cpus, ElementsAre(1));
  EXPECT_THAT(ranks[1].environment, Contains(Pair("LOCAL_RANK", "0")));
}

TEST(RankCommandTest, VariablesOfTheUserStay) {
  const Variables inherited = {{"HOME", "/home/me"},
                               {"PEAL_SECRET", "mine"},
                               {"OMP_NUM_THREADS", "7"},
                               {"PYTHONUNBUFFERED", ""}};
  const Variables variables = make_environment(two_ranks(), kJob, 0, 3, inherited);
  for (const auto& variable : inherited) EXPECT_THAT(variables, Contains(variable));
}

TEST(RankCommandTest, ASecretFileNeedsNoSecret) {
  const Variables variables =
      make_environment(two_ranks(), kJob, 0, 1, {{"PEAL_SECRET_FILE", "/run/secret"}});
  EXPECT_THAT(variables, Not(Contains(Key("PEAL_SECRET"))));
}

TEST(RankCommandTest, AnEmptySecretIsReplaced) {
  Variables inherited = {{"PEAL_SECRET", ""}};
  EXPECT_THAT(make_environment(two_ranks(), kJob, 0, 1, inherited),
              Contains(Pair("PEAL_SECRET", "hush")));
  inherited["PEAL_SECRET_FILE"] = "/run/secret";
  EXPECT_THAT(make_environment(two_ranks(), kJob, 0, 1, inherited),
              Not(Contains(Key("PEAL_SECRET"))));
}

TEST(RankCommandTest, ASecretFileAmongTheOptionsWins) {
  LaunchOptions options = two_ranks();
  options.variables = {{"PEAL_SECRET_FILE", "/run/secret"}};
  for (const Variables& inherited : {Variables(), Variables{{"PEAL_SECRET", "mine"}}}) {
    const Variables variables = make_environment(options, kJob, 0, 1, inherited);
    EXPECT_THAT(variables, Contains(Pair("PEAL_SECRET_FILE", "/run/secret")));
    EXPECT_THAT(variables, Not(Contains(Key("PEAL_SECRET"))));
  }
  options.variables.push_back({"PEAL_SECRET", "other"});
  EXPECT_THAT(make_environment(options, kJob, 0, 1, {}), Contains(Pair("PEAL_SECRET", "other")));
}

TEST(RankCommandTest, ARankOfAnotherLaunchGetsANewRank) {
  const Variables variables = make_environment(
      two_ranks(), kJob, 0, 1, {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"PEAL_JOB", "old"}});
  EXPECT_THAT(variables, Contains(Pair("RANK", "0")));
  EXPECT_THAT(variables, Contains(Pair("WORLD_SIZE", "2")));
  EXPECT_THAT(variables, Contains(Pair("PEAL_JOB", "f00d")));
}

TEST(RankCommandTest, VariablesAmongTheOptionsWin) {
  LaunchOptions options = two_ranks();
  options.variables = {{"PEAL_SECRET", "mine"}, {"OMP_NUM_THREADS", "1"}, {"NEW", ""}};
  const Variables variables = make_environment(options, kJob, 0, 4, {{"OMP_NUM_THREADS", "7"}});
  EXPECT_THAT(variables, Contains(Pair("PEAL_SECRET", "mine")));
  EXPECT_THAT(variables, Contains(Pair("OMP_NUM_THREADS", "1")));
  EXPECT_THAT(variables, Contains(Pair("NEW", "")));
}

TEST(RankCommandTest, ALaunchInsideARankDoesNotInheritItsRecordsAndFaults) {
  LaunchOptions options = two_ranks();
  options.variables = {{"PEAL_INJECT", "rank 1 kill at operation 10"}};
  JobContext job = kJob;
  job.flights = "/tmp/flights";
  Variables inherited = make_environment(options, job, 1, 1, {{"HOME", "/home"}});
  const Variables own = without_those_of_a_rank(inherited);
  std::vector<std::string> names = {"PEAL_JOB", "PEAL_FLIGHT_DIR", "PEAL_INJECT", "PEAL_LAUNCHED"};
  names.insert(names.end(), kHorovodPlace.begin(), kHorovodPlace.end());
  for (const std::string& name : names) {
    EXPECT_TRUE(inherited.contains(name)) << name;
    EXPECT_FALSE(own.contains(name)) << name;
  }
  EXPECT_THAT(own, Contains(Pair("HOME", "/home")));
  inherited["PEAL_FLIGHT_DIR"] = "/tmp/inner";  // set for the inner launch
  EXPECT_THAT(without_those_of_a_rank(inherited), Contains(Pair("PEAL_FLIGHT_DIR", "/tmp/inner")));
}

TEST(RankCommandTest, RecordsAreKeptInTheFolderOfTheJobUnlessTheUserNamesOne) {
  constexpr const char* kName = "PEAL_FLIGHT_DIR";
  JobContext job = kJob;
  job.flights = "/tmp/flights";
  EXPECT_THAT(make_environment(two_ranks(), job, 0, 1, {}), Contains(Pair(kName, "/tmp/flights")));
  for (const std::string users : {"mine", ""}) {
    EXPECT_THAT(make_environment(two_ranks(), job, 0, 1, {{kName, users}}),
                Contains(Pair(kName, users)));
  }
}

TEST(RankCommandTest, TheWidthIsSetOnlyOnATerminal) {
  JobContext job = kJob;
  job.terminal_width = 76;
  EXPECT_THAT(make_environment(two_ranks(), job, 0, 1, {}),
              Contains(Pair("PEAL_TERMINAL_WIDTH", "76")));
  EXPECT_THAT(make_environment(two_ranks(), kJob, 0, 1, {{"PEAL_TERMINAL_WIDTH", "80"}}),
              Not(Contains(Key("PEAL_TERMINAL_WIDTH"))));
}

TEST(RankCommandTest, ThePlanHasOneProcessPerRankWithItsShareOfTheCores) {
  const std::vector<Core> cores = {{{0}}, {{1}}, {{2}}, {{3}}};
  const auto ranks = plan_ranks(two_ranks(), kJob, "/opt/train", divide_cores(cores, 2), {});
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_EQ(ranks[1].program, "/opt/train");
  EXPECT_THAT(ranks[1].arguments, ElementsAre("train", "--epochs", "5"));
  EXPECT_THAT(ranks[1].cpus, ElementsAre(2, 3));
  EXPECT_THAT(ranks[1].environment, Contains(Pair("OMP_NUM_THREADS", "2")));
}

TEST(RankCommandTest, UnboundRanksKnowTheirShareOfTheCores) {
  LaunchOptions options = two_ranks();
  options.binding = Binding::kNone;
  const auto ranks = plan_ranks(
      options, kJob, "/opt/train", divide_cores({{{0}}, {{1}}, {{2}}, {{3}}}, options.ranks), {});
  EXPECT_THAT(ranks[0].cpus, IsEmpty());
  EXPECT_THAT(ranks[0].environment, Contains(Pair("OMP_NUM_THREADS", "2")));
}

TEST(RankCommandTest, TheVariablesAreThoseOfTheProcess) {
  EXPECT_EQ(process_variables().at("PATH"), std::getenv("PATH"));
}

std::string refusal(const LaunchOptions& options) {
  try {
    check(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return std::string(error.message());
  }
  return "";
}

TEST(OptionsTest, InvalidOptionsAreRejectedAndTheErrorSaysWhatToDo) {
  EXPECT_EQ(refusal(two_ranks()), "");
  LaunchOptions options = two_ranks();
  options.ranks = 0;
  EXPECT_THAT(refusal(options), HasSubstr("-n takes"));
  options = two_ranks();
  options.hosts = {{"localhost", 1}};
  EXPECT_THAT(refusal(options), HasSubstr("Requested more processes (2)"));
  options = node_1_of_3();
  EXPECT_EQ(refusal(options), "");
  options.hosts = {{"localhost", 2}};
  EXPECT_THAT(refusal(options), HasSubstr("this is node 1 of 3 (the test)"));
  options = node_1_of_3();
  options.ranks = kMostRanks / 2;
  EXPECT_THAT(refusal(options), HasSubstr("3 nodes of 16384 ranks are more than 32768 ranks"));
  options = two_ranks();
  options.command.clear();
  EXPECT_THAT(refusal(options), HasSubstr("no command"));
  options = two_ranks();
  options.grace = Timeout(-1);
  EXPECT_THAT(refusal(options), HasSubstr("--grace"));
}

TEST(OptionsTest, AVariableThatTheLauncherSetsIsRejectedUnlessItIsADefault) {
  const std::set<std::string> defaults = {"PEAL_SECRET", "OMP_NUM_THREADS", "PYTHONUNBUFFERED"};
  JobContext job = kJob;
  job.terminal_width = 76;
  for (const auto& [name, value] : make_environment(two_ranks(), job, 0, 1, {})) {
    LaunchOptions options = two_ranks();
    options.variables = {{name, "9"}};
    const std::string refused = refusal(options);
    EXPECT_EQ(refused.empty(), defaults.contains(name)) << name << ": " << refused;
    EXPECT_THAT(refused, testing::AnyOf("", HasSubstr("env " + name + "=9")));
  }
}

}  // namespace
}  // namespace peal::launch
