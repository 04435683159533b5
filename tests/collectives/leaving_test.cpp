// A rank that leaves, normally or by an exception, is named by every rank that still needs it, and
// disturbs no other rank.
#include <array>
#include <chrono>
#include <functional>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"
#include "peal/group/tell_peers.h"

#include "tests/support/fabric.h"
#include "tests/support/outcomes.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LeavingTest : public OutcomesTest {};

TEST_P(LeavingTest, ARankThatLeavesNormallyIsNamedByTheRanksThatStillNeedIt) {
  const auto ended = outcomes(3, [](ProcessGroup& group) {
    auto data = some(50'000);
    group.all_reduce(data);
    if (group.rank() == 1) {
      group.destroy();
      return;
    }
    group.all_reduce(data);
  });
  EXPECT_EQ(ended[1].error, "");
  for (const Rank rank : {0, 2}) {
    const auto& outcome = ended[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.kind, ErrorKind::kPeerLost) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 1"), HasSubstr("left")));
  }
}

TEST_P(LeavingTest, ARankThatThrowsIsNamedAsTheCause) {
  const auto ended = outcomes(4, [](ProcessGroup& group) {
    auto data = some(50'000);
    group.all_reduce(data);
    if (group.rank() == 1) throw std::runtime_error("out of luck");
    if (group.rank() == 3) group.recv(data, 1);
    group.all_reduce(data);
  });
  EXPECT_EQ(ended[1].error, "out of luck");
  for (const Rank rank : {0, 2, 3}) {
    const auto& outcome = ended[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.kind, ErrorKind::kPeerLost) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 1"), HasSubstr("because of an exception")));
  }
}

TEST_P(LeavingTest, TellPeersOfExceptionsSendsTheMessageToThePeers) {
  const auto ended = outcomes(3, [](ProcessGroup& group) {
    auto data = some(50'000);
    tell_peers_of_exceptions(group, [&] {
      group.all_reduce(data);
      if (group.rank() == 1) throw std::runtime_error("out of luck");
      if (group.rank() == 2) group.recv(data, 1);
      group.all_reduce(data);
    });
  });
  EXPECT_EQ(ended[1].error, "out of luck");
  for (const Rank rank : {0, 2}) {
    const auto& outcome = ended[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.kind, ErrorKind::kPeerLost) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("rank 1 threw: out of luck"));
  }
}

/// Ranks 1 and 2 use a group that was made from another of their groups, which is destroyed by
/// then.
void work_apart(ProcessGroup& group, const std::function<void(ProcessGroup&)>& wait) {
  if (group.rank() == 0) return;
  tell_peers_of_exceptions(group, [&] {
    const ProcessGroupPtr between = group.new_group(std::vector<Rank>{1, 2});
    const ProcessGroupPtr part = between->new_group(std::vector<Rank>{0, 1});
    between->destroy();
    part->barrier();
    if (group.rank() == 1) throw std::runtime_error("out of luck");
    wait(*part);
  });
}

TEST_P(LeavingTest, ARankThatWaitsInASubGroupAlsoGetsTheException) {
  const auto collective = outcomes(3, [](ProcessGroup& group) {
    work_apart(group, [](ProcessGroup& part) { part.barrier(); });
  });
  const auto message = outcomes(3, [](ProcessGroup& group) {
    work_apart(group, [](ProcessGroup& part) {
      auto data = some(50'000);
      part.recv(data, 0);
    });
  });
  for (const auto& ended : {collective, message}) {
    EXPECT_EQ(ended[2].kind, ErrorKind::kPeerLost) << ended[2].error;
    EXPECT_THAT(ended[2].error, HasSubstr("because of an exception"));
    EXPECT_THAT(ended[2].error, HasSubstr("; it threw: out of luck"));
  }
}

/// Each group may wait half a second for the rank's last report. The groups share a thread: one
/// after the other they would take 40 seconds.
TEST_P(LeavingTest, ManyGroupsThatARankLeavesByAnExceptionFailAtTheSameTime) {
  constexpr int kGroups = kSanitized ? 10 : 80;
  Duration took{};
  const auto ended = outcomes(2, [&](ProcessGroup& world) -> std::string {
    std::vector<ProcessGroupPtr> groups;
    for (int i = 0; i < kGroups; ++i) groups.push_back(world.new_group(std::vector<Rank>{0, 1}));
    std::vector<std::vector<float>> data(kGroups, some());
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; world.rank() == 0 && i < groups.size(); ++i) {
      works.push_back(groups[i]->irecv(data[i], 1));
    }
    world.barrier();
    if (world.rank() == 1) throw std::runtime_error("out of luck");
    const TimePoint begin = Clock::now();
    std::string complaints;
    for (const WorkPtr& work : works) {
      complaints += missing_error("a receive", [&] { work->wait(); });
    }
    took = Clock::now() - begin;
    return complaints;
  });
  EXPECT_EQ(ended[0].error, "");
  EXPECT_LT(took, std::chrono::minutes(5));
}

TEST_P(LeavingTest, TellPeersOfExceptionsChangesNothingWithoutAnException) {
  const auto ended = outcomes(2, [](ProcessGroup& group) -> std::string {
    auto data = some();
    const float sum = tell_peers_of_exceptions(group, [&] {
      group.all_reduce(data);
      return data.front();
    });
    group.barrier();
    return sum == 2 ? "" : "a wrong sum";
  });
  EXPECT_EQ(complaints(ended), "");
}

TEST_P(LeavingTest, AnExceptionWithCollectivesInFlightIsNamedToo) {
  std::vector<float> abandoned = some();
  const auto ended = outcomes(2, [&](ProcessGroup& group) {
    auto data = some();
    if (group.rank() == 0) {
      group.recv(data, 1);
    } else {
      group.all_reduce_async(abandoned);
      throw std::runtime_error("out of luck");
    }
  });
  EXPECT_EQ(ended[1].error, "out of luck");
  EXPECT_EQ(ended[0].kind, ErrorKind::kPeerLost) << ended[0].error;
  EXPECT_THAT(ended[0].error, AllOf(HasSubstr("rank 1"), HasSubstr("because of an exception")));
}

TEST_P(LeavingTest, RanksThatAllThrowAfterACollectiveHaveEachCompletedIt) {
  for (int round = 0; round < 10; ++round) {
    const auto ended = outcomes(3, [](ProcessGroup& group) {
      auto data = some(5'000);
      group.broadcast(data, 0);  // the root does not wait for the others
      throw std::runtime_error("all agreed to stop");
    });
    for (const auto& outcome : ended) EXPECT_EQ(outcome.error, "all agreed to stop");
  }
}

/// The error of rank 0 if rank 1 leaves `job` while rank 0 still needs it.
std::string error_when(Job& job, void (*leave)(Job&)) {
  const auto ended = on_ranks(2, [&](Rank rank) -> std::string {
    if (rank == 1) {
      leave(job);
    } else {
      job.join(0)->barrier();
    }
    return "";
  });
  return ended[0].error;
}

TEST_P(LeavingTest, AnExceptionThatIsCaughtBeforeTheRankLeavesIsNotReported) {
  Job job(GetParam(), 2);
  const std::string error = error_when(job, [](Job& world) {
    const ProcessGroupPtr group = world.join(1);
    try {
      throw std::runtime_error("out of luck");
    } catch (const std::exception&) {
      group->destroy();
    }
  });
  EXPECT_THAT(error, AllOf(HasSubstr("rank 1"), HasSubstr("left"), Not(HasSubstr("exception"))));
}

TEST_P(LeavingTest, AGroupThatIsMadeAndEndedDuringUnwindingEndsNormally) {
  Job job(GetParam(), 2);
  const std::string error = error_when(job, [](Job& world) {
    struct LastWords {
      Job& world;
      ~LastWords() { world.join(1); }
    };
    const LastWords last_words{world};
    throw std::runtime_error("out of luck");
  });
  EXPECT_THAT(error, AllOf(HasSubstr("rank 1"), HasSubstr("left"), Not(HasSubstr("exception"))));
}

TEST_P(LeavingTest, ARankThatLeavesNormallyDoesNotDisturbRanksThatAreDoneWithIt) {
  for (int round = 0; round < 10; ++round) {
    std::array<std::latch, 3> left{std::latch(1), std::latch(1), std::latch(1)};
    const auto ended = outcomes(3, [&](ProcessGroup& group) {
      const auto self = static_cast<std::size_t>(group.rank());
      const Arrival when_it_has_left(left[self]);
      auto data = some(5'000);
      group.broadcast(data, 0);  // the root does not wait for the others
      if (self > 0) left[self - 1].wait();
      group.destroy();
      return missing_error("a barrier of the group that is left", [&] { group.barrier(); });
    });
    EXPECT_EQ(complaints(ended), "");
  }
}

TEST_P(LeavingTest, AnOpenReceiveEndsWhenTheGroupIsDestroyed) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    const WorkPtr receive = group.irecv(data, 1 - group.rank());
    group.destroy(kSoon);
    receive->wait();
  });
  for (const auto& outcome : ended) EXPECT_THAT(outcome.error, HasSubstr("the group"));
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         LeavingTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
