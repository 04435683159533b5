#include "peal/launch/submitted/job_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::submitted {
namespace {

using agents::WantedCommand;
using testing::AllOf;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;

Role role_with(const std::string& name, int nodes, const std::string& program) {
  return {.name = name, .nodes = {nodes, nodes}, .command = {program}, .args = {"--x"}};
}

/// The answer of an agent whose commands are in /bin.
agents::Ready ready_for(const std::vector<agents::WantedCommand>& commands) {
  agents::Ready ready{.own = {{"HOME", "/home/there"}, {"LANG", "C"}}, .records = "/records"};
  for (const auto& [words, path] : commands) {
    ready.commands.push_back({(path.empty() ? "/bin/" : path + "/") + words.front(), words});
  }
  for (int i = 0; i < 4; ++i) ready.cores.push_back({.cpus = {i}});
  return ready;
}

struct Made {
  ProcessPlan plan;
  std::vector<RankCommand> ranks;
};

Made made_from(const Job& job, const std::vector<JobHost>& hosts, const Variables& inherited = {}) {
  Made made{.plan = plan_processes(job, hosts, {"10.0.0.1", 4711}), .ranks = {}};
  std::map<std::string, agents::Ready> facts;
  for (const std::string& host : hosts_of(made.plan)) {
    facts.emplace(host, ready_for(needs_on(host, made.plan).commands));
  }
  made.ranks = job_ranks(job, made.plan, {.id = "j1"}, 2, facts, inherited);
  return made;
}

TEST(JobRanksTest, EachHostIsAskedForTheCommandsOfItsOwnProcesses) {
  const Job job{.name = "j", .roles = {role_with("a", 1, "first"), role_with("b", 3, "second")}};
  const Made made = made_from(job, {{"h0", 2}, {"h1", 2}});
  EXPECT_THAT(hosts_of(made.plan), ElementsAre("h0", "h1"));
  EXPECT_THAT(needs_on("h0", made.plan).commands,
              ElementsAre(WantedCommand{{"first", "--x"}}, WantedCommand{{"second", "--x"}}));
  EXPECT_THAT(needs_on("h1", made.plan).commands, ElementsAre(WantedCommand{{"second", "--x"}}));
  ASSERT_EQ(made.ranks.size(), 4u);
  EXPECT_EQ(made.ranks[0].program, "/bin/first");
  EXPECT_EQ(made.ranks[1].program, "/bin/second");
  EXPECT_EQ(made.ranks[3].program, "/bin/second");
  EXPECT_EQ(made.ranks[3].host, "h1");
}

TEST(JobRanksTest, AHostNeedsTheImagesOfItsOwnProcesses) {
  Job job{.name = "j", .roles = {role_with("a", 1, "p"), role_with("b", 2, "p")}};
  job.roles[0].image = "first";
  job.roles[1].image = "second";
  const Made made = made_from(job, {{"h0", 1}, {"h1", 2}});
  EXPECT_THAT(needs_on("h0", made.plan).images, ElementsAre("first"));
  EXPECT_THAT(needs_on("h1", made.plan).images, ElementsAre("second"));
  EXPECT_THAT(needs_on("h1", made.plan).commands, IsEmpty());
}

TEST(JobRanksTest, TheCommandOfARoleIsFoundByThePathOfTheRole) {
  Job job{.name = "j", .roles = {role_with("a", 1, "p"), role_with("b", 1, "p")}};
  job.roles[1].env = {{"PATH", "/opt/b"}};
  const Made made = made_from(job, {{"h0", 2}});
  EXPECT_EQ(made.ranks[0].program, "/bin/p");
  EXPECT_EQ(made.ranks[1].program, "/opt/b/p");
}

TEST(JobRanksTest, VariablesOfTheJobOverrideThoseOfTheHostAndOfTheLauncher) {
  Job job{.name = "j", .roles = {role_with("a", 1, "p")}, .env = {{"LANG", "de"}}};
  const Made made =
      made_from(job, {{"h0", 1}}, {{"LANG", "fr"}, {"OMP_NUM_THREADS", "7"}, {"OWN", "1"}});
  EXPECT_THAT(made.ranks.front().environment,
              IsSupersetOf({Pair("LANG", "de"),
                            Pair("HOME", "/home/there"),
                            Pair("OMP_NUM_THREADS", "7"),
                            Pair("OWN", "1"),
                            Pair("RANK", "0"),
                            Pair("PEAL_ATTEMPT", "2"),
                            Pair("PEAL_JOB", "j1"),
                            Pair("PEAL_FLIGHT_DIR", "/records"),
                            Pair("MASTER_ADDR", "10.0.0.1"),
                            Pair("MASTER_PORT", "4711")}));
}

TEST(JobRanksTest, ProcessesOfAHostShareItsCores) {
  Job job{.name = "j", .roles = {role_with("a", 1, "p"), role_with("b", 1, "q")}};
  const Made made = made_from(job, {{"h0", 2}});
  EXPECT_THAT(made.ranks[0].cpus, ElementsAre(0, 1));
  EXPECT_THAT(made.ranks[1].cpus, ElementsAre(2, 3));
  EXPECT_EQ(made.ranks[1].environment.at("OMP_NUM_THREADS"), "2");
}

TEST(JobRanksTest, AContainerWithALimitOfCpusHasNoMoreThreads) {
  const auto threads_with = [](double cpus, int ranks, const std::string& image) {
    Job job{.name = "j", .roles = {role_with("a", 1, "p")}};
    job.roles[0].ranks_per_node = ranks;
    job.roles[0].image = image;
    job.roles[0].resources.cpus = cpus;
    return made_from(job, {{"h0", ranks}}).ranks.front().environment.at("OMP_NUM_THREADS");
  };
  EXPECT_EQ(threads_with(1, 1, "x"), "1");
  EXPECT_EQ(threads_with(2.5, 1, "x"), "2");
  EXPECT_EQ(threads_with(2, 2, "x"), "1");
  EXPECT_EQ(threads_with(0.5, 1, "x"), "1");
  EXPECT_EQ(threads_with(99, 1, "x"), "4");
  EXPECT_EQ(threads_with(1, 1, ""), "4");  // nothing limits the process
}

/// `peal run` takes a process with these marks for a rank, and would start a world of its own.
TEST(JobRanksTest, NodesThatStartTheirRanksAreNotMarkedAsRanks) {
  const auto has = [](const char* name) { return testing::Contains(testing::Key(name)); };
  Job job{.name = "j", .roles = {role_with("a", 1, "p")}};
  EXPECT_THAT(made_from(job, {{"h0", 1}}).ranks.front().environment,
              AllOf(has("PEAL_LAUNCHED"), has("LOCAL_RANK")));
  job.form = JobForm::kTrainingInput;
  EXPECT_THAT(made_from(job, {{"h0", 1}}).ranks.front().environment,
              AllOf(Not(has("PEAL_LAUNCHED")), Not(has("LOCAL_RANK")), has("RANK")));
  job = {.name = "j", .roles = {{.name = "a", .command = {"peal", "run", "-n", "2", "p"}}}};
  EXPECT_THAT(made_from(job, {{"h0", 1}}).ranks.front().environment,
              AllOf(Not(has("PEAL_LAUNCHED")), Not(has("LOCAL_RANK")), has("WORLD_SIZE")));
}

TEST(JobRanksTest, ProcessesOutsideTheWorldHaveNoRank) {
  Job job{.name = "j", .roles = {role_with("a", 1, "p"), role_with("e", 1, "q")}};
  job.roles[1].in_world = false;
  const Made made = made_from(job, {{"h0", 2}});
  EXPECT_THAT(made.ranks[1].environment,
              AllOf(Not(testing::Contains(testing::Key("RANK"))),
                    Not(testing::Contains(testing::Key("PEAL_LAUNCHED"))),
                    testing::Contains(Pair("PEAL_ROLE", "e"))));
  EXPECT_EQ(made.ranks[0].environment.at("WORLD_SIZE"), "1");
}

}  // namespace
}  // namespace peal::launch::submitted
