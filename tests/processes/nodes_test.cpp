// A job whose nodes are started separately: a `peal run -n 2` for each node, all on this machine.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/net/testing/reserved_port.h"

#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Variables = Processes::Variables;

/// The place of the job, by the variables of a managed service.
class NodesTest : public ::testing::Test {
 protected:
  Variables variables_of(int node, int nodes, const Variables& more = {}) const {
    Variables all = {{"RANK", fmt::format("{}", node)},
                     {"WORLD_SIZE", fmt::format("{}", nodes)},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", port_.text()},
                     {"TMPDIR", folder_.path()}};
    for (const auto& [name, value] : more) all[name] = value;
    return all;
  }
  /// Starts `peal run -n 2 RANK_PROGRAM WORDS...` as this node.
  void start(const Variables& variables,
             const std::vector<std::string>& words,
             const std::vector<std::string>& options = {}) {
    std::vector<std::string> command = {PEAL_PROGRAM, "run", "-n", "2"};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back(PEAL_TEST_RANK);
    command.insert(command.end(), words.begin(), words.end());
    processes_->start(command, variables);
  }
  std::vector<Processes::Ended> run(int nodes,
                                    const std::vector<std::string>& words,
                                    const Variables& more = {},
                                    const std::vector<std::string>& options = {}) {
    for (int node = nodes - 1; node >= 0; --node) {
      start(variables_of(node, nodes, more), words, options);
    }
    auto ended = wait();
    std::reverse(ended.begin(), ended.end());
    return ended;
  }
  /// Waits for all that were started since the last call, in the order of their start.
  std::vector<Processes::Ended> wait() {
    auto ended = processes_->wait(Deadline::after(kLimit));
    processes_.emplace();
    return ended;
  }

  const TemporaryFolder folder_;
  const net::ReservedPort port_;
  std::optional<Processes> processes_{std::in_place};
};

TEST_F(NodesTest, TheRanksOfAllNodesAreOneWorld) {
  for (const int nodes : {2, 3}) {
    const auto ended = run(nodes, {"meet"});
    ASSERT_EQ(ended.size(), static_cast<std::size_t>(nodes));
    for (int rank = 0; rank < 2 * nodes; ++rank) {
      const Processes::Ended& own = ended[static_cast<std::size_t>(rank / 2)];
      EXPECT_EQ(own.code, 0) << own.output;
      EXPECT_THAT(own.output,
                  HasSubstr(fmt::format("[{0}] met as rank {0} of {1}\n", rank, 2 * nodes)));
    }
  }
}

/// Two launchers of one machine, with shared memory and without it.
TEST_F(NodesTest, AllOperationsHaveTheRightResultsBetweenNodes) {
  for (const char* transport : {"auto", "tcp"}) {
    for (const auto& node : run(2, {"grid"}, {{"PEAL_TRANSPORT", transport}})) {
      EXPECT_EQ(node.code, 0) << transport << node.output;
    }
  }
}

TEST_F(NodesTest, AKilledRankEndsAllNodesAndTheOtherNodesSayWhereTheCauseIs) {
  const std::string logs = folder_.path() + "/logs";
  const auto ended = run(2, {"kill"}, {}, {"--log-dir", logs});
  EXPECT_EQ(ended[0].code, 128 + SIGKILL);
  EXPECT_THAT(ended[0].output,
              AllOf(HasSubstr("peal: why: The process of rank 1 was killed by SIGKILL"),
                    Not(HasSubstr("the cause is on node"))));
  EXPECT_EQ(ended[1].code, 2);
  EXPECT_THAT(ended[1].output,
              AllOf(ContainsRegex("peal: why: Rank [23] failed because of rank 1, which is on node "
                                  "0: peer_lost: rank 1 "),
                    HasSubstr("peal: the cause is on node 0: see the report of its launcher\n"),
                    Not(HasSubstr("likely cause first"))));
  EXPECT_TRUE(std::filesystem::exists(logs + "/peal.node-0.dump"));
  EXPECT_TRUE(std::filesystem::exists(logs + "/peal.node-1.dump"));
  EXPECT_TRUE(std::filesystem::exists(logs + "/rank-3.out"));
  Processes why;
  why.start({PEAL_PROGRAM, "why", logs + "/peal.node-0.dump", logs + "/peal.node-1.dump"}, {});
  EXPECT_THAT(why.wait(Deadline::after(kLimit)).front().output,
              AllOf(HasSubstr("The process of rank 1 was killed by SIGKILL"),
                    HasSubstr("\n  rank 3 (process ")));
}

TEST_F(NodesTest, AFrozenRankIsNamedOnTheOtherNode) {
  Variables variables = {{"PEAL_TEST_TIMEOUT", "10000"}};
  variables.merge(without_leak_check());
  const auto ended = run(2, {"freeze"}, variables);
  EXPECT_THAT(ended[0].output, HasSubstr("peal: why: Rank 1 never entered all_reduce #11"));
  EXPECT_EQ(ended[1].code, 2);
  EXPECT_THAT(ended[1].output,
              AllOf(HasSubstr("peal: why: Rank 1 never entered all_reduce #11"),
                    HasSubstr("peal: the cause is on node 0"),
                    Not(HasSubstr("likely cause first"))));
}

TEST_F(NodesTest, ARankThatEndsBeforeTheMeetingIsNamedOnTheOtherNode) {
  const auto ended = run(2, {"absent", "3"});
  EXPECT_EQ(ended[1].code, 9);
  EXPECT_EQ(ended[0].code, 2);
  EXPECT_THAT(ended[0].output,
              AllOf(ContainsRegex("peer_lost: .*rank 3 \\(.*\\) ended"),
                    HasSubstr("peal: the cause is on node 1")));
}

TEST_F(NodesTest, AMissingNodeIsNamed) {
  start(variables_of(0, 3, {{"PEAL_TIMEOUT", "3"}}), {"meet"});
  start(variables_of(2, 3, {{"PEAL_TIMEOUT", "3"}}), {"meet"});
  for (const auto& node : wait()) {
    EXPECT_EQ(node.code, 2);
    EXPECT_THAT(node.output,
                HasSubstr("2 of 6 ranks did not join the group in time: rank 2, 3; no rank of node "
                          "1 came; "));
  }
}

TEST_F(NodesTest, AMissingNode0IsNamedByThePlaceThatTheUserHasGiven) {
  start(variables_of(1, 2, {{"PEAL_TIMEOUT", "2"}}), {"meet"});
  const auto ended = wait();
  EXPECT_EQ(ended[0].code, 2);
  EXPECT_THAT(ended[0].output,
              AllOf(HasSubstr("cannot reach rank 0 at 127.0.0.1:" + port_.text() + ", and has"),
                    Not(HasSubstr("unix:"))));
}

TEST_F(NodesTest, TwoNodesWithTheSameNumberAreRejectedAndNamed) {
  // Node 1 is not started: its ranks and one node 0 could meet and end before the other node 0
  // comes.
  start(variables_of(0, 2), {"meet"});
  start(variables_of(0, 2), {"meet"});
  bool is_named = false;
  for (const auto& node : wait()) {
    is_named = is_named || std::string::npos != node.output.find("is given twice: to process ");
  }
  EXPECT_TRUE(is_named);
}

TEST_F(NodesTest, NodesWithDifferentNumbersOfRanksAreRejected) {
  start(variables_of(0, 2), {"meet"});
  processes_->start({PEAL_PROGRAM, "run", "-n", "3", PEAL_TEST_RANK, "meet"}, variables_of(1, 2));
  const auto ended = wait();
  EXPECT_EQ(ended[0].code, 2);
  EXPECT_THAT(ended[0].output,
              AllOf(HasSubstr("the ranks disagree on the world size: it is "),
                    HasSubstr("; node 0 was started with -n 2 and node 1 with -n 3: give peal run "
                              "the same -n on every node")));
  EXPECT_NE(ended[1].code, 0);
}

TEST_F(NodesTest, NodesWithDifferentSecretsDoNotMeet) {
  start(variables_of(0, 2, {{"PEAL_SECRET", "one secret of all nodes"}, {"PEAL_TIMEOUT", "5"}}),
        {"meet"});
  start(variables_of(1, 2, {{"PEAL_SECRET", "and another secret"}, {"PEAL_TIMEOUT", "5"}}),
        {"meet"});
  for (const auto& node : wait()) {
    EXPECT_EQ(node.code, 2);
    EXPECT_THAT(node.output, HasSubstr("secret"));
  }
}

TEST_F(NodesTest, NodesOfOneFolderOfRecordsDoNotDisturbEachOther) {
  const std::string flights = folder_.path() + "/flights";
  for (int times = 0; times < 2; ++times) {  // the second job finds the records of the first
    const auto ended = run(2, {"exit"}, {{"PEAL_FLIGHT_DIR", flights}});
    EXPECT_EQ(ended[0].code, 9);
    for (const auto& node : ended) {
      EXPECT_THAT(node.output,
                  HasSubstr("peal: why: The process of rank 1 ended with exit code 9"));
    }
  }
}

/// A program that is started once for each node meets without `peal run`.
TEST_F(NodesTest, AProgramOnEachNodeMeetsByTheVariablesOfTheLauncher) {
  for (const char* node : {"0", "1"}) {
    processes_->start({PEAL_TEST_RANK, "meet"},
                      {{"SKYPILOT_NUM_NODES", "2"},
                       {"SKYPILOT_NODE_RANK", node},
                       {"SKYPILOT_NODE_IPS", "127.0.0.1\n127.0.0.2"},
                       {"MASTER_PORT", port_.text()}});
  }
  const auto ended = wait();
  for (std::size_t node = 0; node < 2; ++node) {
    EXPECT_EQ(ended[node].output, fmt::format("met as rank {} of 2\n", node));
  }
}

}  // namespace
}  // namespace peal::testing
