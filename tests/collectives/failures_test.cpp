// What goes wrong ends with the same cause on every rank, in time, and says who and what.
#include <array>
#include <latch>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/sanitized.h"
#include "peal/group/tell_peers.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kSoon = std::chrono::milliseconds(300);

std::vector<float> some(std::int64_t count = 100) {
  return std::vector<float>(static_cast<std::size_t>(count), 1);
}

using Ended = std::vector<Outcome<std::string>>;

void expect_mismatch(const Ended& ended, const std::string& one, const std::string& other) {
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kMismatch) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr(one), HasSubstr(other)));
  }
}

/// A complaint if the call does not throw.
template <class Call>
std::string missing_error(const std::string& name, Call call) {
  try {
    call();
  } catch (const Error&) {
    return "";
  }
  return name + " ended well";
}

class FailuresTest : public ::testing::TestWithParam<Fabric> {
 protected:
  /// Runs the body on every rank and returns how each ended: with a complaint, if the body returns
  /// one, or with an error.
  template <class Body>
  static Ended outcomes(int ranks, Body body) {
    Job job(GetParam(), ranks);
    return on_ranks(ranks, [&](Rank rank) -> std::string {
      const ProcessGroupPtr group = job.join(rank);
      if constexpr (std::is_void_v<decltype(body(*group))>) {
        body(*group);
        return "";
      } else {
        return body(*group);
      }
    });
  }
};

TEST_P(FailuresTest, RanksInDifferentOperationsAllGetAMismatchThatShowsBoth) {
  const auto ended = outcomes(3, [](ProcessGroup& group) {
    auto data = some();
    if (group.rank() == 1) {
      group.broadcast(data, 0);
    } else {
      group.all_reduce(data);
    }
    group.barrier();
  });
  expect_mismatch(ended, "broadcast", "all_reduce");
}

TEST_P(FailuresTest, DifferentCountsAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some(group.rank() == 1 ? 101 : 100);
    group.all_reduce(data);
  });
  expect_mismatch(ended, "sum of 100 f32", "sum of 101 f32");
}

TEST_P(FailuresTest, RootsThatDifferAreAMismatchAtTheNextOperationAtTheLatest) {
  for (const std::size_t count : {1, 100}) {
    for (const bool is_broadcast : {true, false}) {
      const auto ended = outcomes(3, [&](ProcessGroup& group) {
        const Rank root =
            group.rank() == 0 ? 0 : 1;  // two roots: what they send fits into the links
        std::vector<float> all(count * 3), mine(count);
        if (is_broadcast) {
          group.broadcast(all, root);
        } else {
          group.scatter(all, mine, root);
        }
        group.barrier();
      });
      for (const auto& outcome : ended) {
        EXPECT_EQ(outcome.kind, ErrorKind::kMismatch) << outcome.error;
        EXPECT_THAT(outcome.error, HasSubstr("root"));
      }
    }
  }
}

TEST_P(FailuresTest, DifferentTypesAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      std::vector<double> data(100, 1);
      group.all_reduce(data);
    } else {
      auto data = some();
      group.all_reduce(data);
    }
  });
  expect_mismatch(ended, "sum of 100 f32", "sum of 100 f64");
}

TEST_P(FailuresTest, DifferentOperatorsAreAMismatchThatShowsBoth) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    group.all_reduce(data, group.rank() == 1 ? ReduceOp::kMax : ReduceOp::kSum);
  });
  expect_mismatch(ended, "sum of 100 f32", "max of 100 f32");
}

TEST_P(FailuresTest, ARegisteredMessageOfAnotherShapeThanItsReceiveEndsBothWithMismatch) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    const std::int64_t count = group.rank() == 0 ? 100'000 : 90'000;
    const Memory memory = group.allocate(Bytes(count * 4));
    const std::span values(reinterpret_cast<float*>(memory.get()), static_cast<std::size_t>(count));
    if (group.rank() == 0) {
      group.send(values, 1);
      group.recv(values, 1);
    } else {
      group.recv(values, 0);
    }
  });
  expect_mismatch(ended, "100000 f32", "90000 f32");
}

TEST_P(FailuresTest, AReceiveOfAnotherShapeThanTheSendEndsBothWithMismatch) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some(group.rank() == 0 ? 10 : 11);
    if (group.rank() == 0) {
      group.send(data, 1);
      group.recv(data, 1);
    } else {
      group.recv(data, 0);
    }
  });
  expect_mismatch(ended, "10 f32", "11 f32");
}

TEST_P(FailuresTest, ATimeoutNamesWhoIsMissingOnEveryRank) {
  std::latch others(2);
  const auto ended = outcomes(3, [&](ProcessGroup& group) {
    auto data = some();
    group.all_reduce(data);
    if (group.rank() == 2) {
      others.wait();
      group.all_reduce(data);  // may end well: the others have given their parts
      group.barrier();
    } else {
      const Arrival when_it_has_ended(others);
      group.all_reduce(data, ReduceOp::kSum, kSoon);
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("all_reduce #2"), HasSubstr("rank 2")));
  }
}

TEST_P(FailuresTest, AReceiveThatNobodyAnswersTimesOut) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    if (group.rank() == 0) {
      group.recv(data, 1, Tag{5}, kSoon);
    } else {
      group.barrier();
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("recv of 100 f32 from rank 1, tag 5")));
  }
}

TEST_P(FailuresTest, AMonitoredBarrierNamesEveryRankThatDidNotCome) {
  std::latch others(2);
  std::latch rank_2_comes(1);
  const auto ended = outcomes(4, [&](ProcessGroup& group) {
    group.monitored_barrier();
    if (group.rank() == 1 || group.rank() == 3) {
      others.wait();
      group.monitored_barrier();
    } else {
      const Arrival when_it_has_ended(others);
      if (group.rank() == 0) rank_2_comes.wait();
      if (group.rank() == 2) rank_2_comes.count_down();
      group.monitored_barrier(3 * kSoon);  // rank 2 may still be a little late on a busy machine
    }
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.kind, ErrorKind::kTimeout) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("ranks 1, 3 did not come within 900 ms"));
  }
}

TEST_P(FailuresTest, AnAbortEndsBlockedAndLaterCallsEverywhere) {
  std::latch about_to_block(3);
  const auto ended = outcomes(3, [&](ProcessGroup& group) -> std::string {
    auto data = some();
    std::thread aborter;
    if (group.rank() == 0) {
      aborter = std::thread([&] {
        about_to_block.wait();
        // Nothing tells that a call blocks. An abort that comes too early is a test all the same.
        std::this_thread::sleep_for(kSoon / 10);
        group.abort("enough");
      });
    }
    const std::string wrong = missing_error("the blocked call", [&] {
      about_to_block.count_down();
      if (group.rank() == 2) {
        group.recv(data, 0);
      } else {
        group.all_reduce(data);
      }
    });
    if (aborter.joinable()) aborter.join();
    if (wrong.empty()) group.barrier();
    return wrong;
  });
  for (const auto& outcome : ended) {
    EXPECT_EQ(outcome.result, "");
    EXPECT_EQ(outcome.kind, ErrorKind::kPeerLost) << outcome.error;
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0"), HasSubstr("enough")));
  }
}

TEST_P(FailuresTest, AnAbortEndsTheWaitForASubGroupToo) {
  if (GetParam() != Fabric::kShm && GetParam() != Fabric::kTcp) return;  // the others need no wait
  std::latch over(1);
  const auto ended = outcomes(2, [&](ProcessGroup& group) {
    if (group.rank() == 1) return over.wait();
    const Arrival when_it_has_ended(over);
    std::thread aborter([&] {
      std::this_thread::sleep_for(kSoon / 10);
      group.abort("enough");
    });
    const std::vector<Rank> all = {0, 1};
    const Error error = error_of([&] { group.new_group(all); });
    aborter.join();
    throw Error(error);
  });
  EXPECT_EQ(ended[0].kind, ErrorKind::kPeerLost) << ended[0].error;
  EXPECT_THAT(ended[0].error, HasSubstr("enough"));
}

TEST_P(FailuresTest, ARankThatLeavesInOrderIsMissedByThoseWhoStillNeedIt) {
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

TEST_P(FailuresTest, ARankWhoseExceptionEndsTheGroupIsNamedWithThatReason) {
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

TEST_P(FailuresTest, ARankThatTellsItsPeersOfExceptionsGivesThemItsMessage) {
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

/// Ranks 1 and 2 work in a group that is made of another one of theirs, which is gone by then.
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

TEST_P(FailuresTest, WhoWaitsInASubGroupIsToldOfTheExceptionToo) {
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

/// Each group may wait half a second until it is sure that the rank says nothing more. The groups
/// share a thread: one after the other they would take 40 seconds.
TEST_P(FailuresTest, ManyGroupsThatARankLeavesByAnExceptionFailAtTheSameTime) {
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

TEST_P(FailuresTest, TellingPeersOfExceptionsChangesNothingWhereThereAreNone) {
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

TEST_P(FailuresTest, AnExceptionWithCollectivesUnderWayIsNamedToo) {
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

TEST_P(FailuresTest, RanksThatAllThrowAfterACollectiveHaveEachCompletedIt) {
  for (int round = 0; round < 10; ++round) {
    const auto ended = outcomes(3, [](ProcessGroup& group) {
      auto data = some(5'000);
      group.broadcast(data, 0);  // the root does not wait for the others
      throw std::runtime_error("all agreed to stop");
    });
    for (const auto& outcome : ended) EXPECT_EQ(outcome.error, "all agreed to stop");
  }
}

/// Where rank 1 leaves `job` while rank 0 still needs it: what rank 0 is told.
std::string told_when(Job& job, void (*leave)(Job&)) {
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

TEST_P(FailuresTest, AnExceptionThatTheRankHasCaughtBeforeItLeavesIsItsOwnMatter) {
  Job job(GetParam(), 2);
  const std::string told = told_when(job, [](Job& world) {
    const ProcessGroupPtr group = world.join(1);
    try {
      throw std::runtime_error("out of luck");
    } catch (const std::exception&) {
      group->destroy();
    }
  });
  EXPECT_THAT(told, AllOf(HasSubstr("rank 1"), HasSubstr("left"), Not(HasSubstr("exception"))));
}

TEST_P(FailuresTest, AGroupThatIsMadeAndEndedWhileAnExceptionUnwindsEndsInOrder) {
  Job job(GetParam(), 2);
  const std::string told = told_when(job, [](Job& world) {
    struct LastWords {
      Job& world;
      ~LastWords() { world.join(1); }
    };
    const LastWords last_words{world};
    throw std::runtime_error("out of luck");
  });
  EXPECT_THAT(told, AllOf(HasSubstr("rank 1"), HasSubstr("left"), Not(HasSubstr("exception"))));
}

TEST_P(FailuresTest, WhoLeavesInOrderDisturbsNobodyWhoIsDoneWithIt) {
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

TEST_P(FailuresTest, WorksThatWereUnderWayEndWithTheCauseToo) {
  std::latch under_way(1);
  const auto ended = outcomes(2, [&](ProcessGroup& group) -> std::string {
    auto data = some();
    auto more = some();
    if (group.rank() == 1) {
      under_way.wait();
      group.abort("enough");
      return "";
    }
    const WorkPtr reduce = group.all_reduce_async(data);
    const WorkPtr receive = group.irecv(more, 1);
    under_way.count_down();
    const std::string wrong = missing_error("the receive", [&] { receive->wait(); });
    if (!wrong.empty()) return wrong;
    if (!receive->exception()) return "the receive does not know what it ended with";
    reduce->wait();
    return "";
  });
  EXPECT_EQ(ended[0].result, "");
  EXPECT_EQ(ended[1].error, "");
  EXPECT_EQ(ended[0].kind, ErrorKind::kPeerLost) << ended[0].error;
  EXPECT_THAT(ended[0].error, HasSubstr("enough"));
}

TEST_P(FailuresTest, AReceiveThatIsStillOpenWhenTheGroupIsDestroyedEndsWithIt) {
  const auto ended = outcomes(2, [](ProcessGroup& group) {
    auto data = some();
    const WorkPtr receive = group.irecv(data, 1 - group.rank());
    group.destroy(kSoon);
    receive->wait();
  });
  for (const auto& outcome : ended) EXPECT_THAT(outcome.error, HasSubstr("the group"));
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         FailuresTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
