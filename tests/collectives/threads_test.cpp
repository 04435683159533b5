// Several threads of a process use one group. Whatever the threads do at the same time, each call
// ends, either well or with the group's cause.
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

class ThreadsTest : public ::testing::TestWithParam<Fabric> {};

/// The error text of the call.
template <class Call>
std::string end_of(Call&& call) {
  return error_of(std::forward<Call>(call)).what();
}

TEST_P(ThreadsTest, DestroyEndsTheBlockedCallsOfOtherThreads) {
  struct Ends {
    std::string destroyed, received, reduced;
  };
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(100);
    std::vector<float> more(100);
    Ends ends;
    if (rank == 1) {  // never joins the all_reduce
      ends.received = end_of([&] { group->recv(data, 0); });
      return ends;
    }
    const WorkPtr queued = group->all_reduce_async(data);
    std::thread receiver([&] { ends.received = end_of([&] { group->recv(more, 1); }); });
    ends.destroyed = end_of([&] { group->destroy(Timeout(200)); });
    receiver.join();
    ends.reduced = end_of([&] { queued->wait(); });
    return ends;
  });
  const char* const why = "destroyed on rank 0 while collectives were running";
  EXPECT_THAT(ended[0].result.destroyed, HasSubstr(why));
  EXPECT_THAT(ended[0].result.reduced, HasSubstr(why));
  EXPECT_THAT(ended[0].result.received, HasSubstr("destroyed"));
  EXPECT_THAT(ended[1].result.received,
              HasSubstr("peer_lost: rank 0 has left the group while collectives of the group"))
      << ended[1].error;
}

TEST_P(ThreadsTest, AbortFreesAThreadThatIsInDestroy) {
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(100);
    if (rank == 1) return end_of([&] { group->recv(data, 0); });
    const WorkPtr reduced = group->all_reduce_async(data);
    std::thread destroyer([&] { group->destroy(std::chrono::minutes(5)); });
    while (end_of([&] { group->allocate(1_B); }).find("destroyed") == std::string::npos) {
    }  // until it has begun
    group->abort("enough");
    destroyer.join();
    return end_of([&] { reduced->wait(); });
  });
  for (const auto& outcome : ended) EXPECT_THAT(outcome.result, HasSubstr("enough"));
}

TEST_P(ThreadsTest, CallsThatRaceWithDestroySucceedOrSayThatTheGroupIsDestroyed) {
  for (int round = 0; round < 20; ++round) {
    Job job(GetParam(), 1 + round % 3);
    const auto ended = on_ranks(job.ranks(), [&](Rank rank) {
      const ProcessGroupPtr group = job.join(rank);
      const std::vector<float> data(10);  // outlives the sends that no call waits for
      const Rank peer = (rank + 1) % group->size();
      const std::array<std::function<void()>, 3> calls = {
          [&] { group->barrier({.timeout = std::chrono::seconds(30)}); },
          [&] { group->isend(data, peer); },
          [&] { group->allocate(64_B); },
      };
      std::vector<std::string> ends(calls.size());
      std::atomic<int> made{0};
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < calls.size(); ++t) {
        threads.emplace_back([&, t] {
          try {
            for (;; ++made) calls[t]();
          } catch (const Error& error) {
            ends[t] = error.what();
          }
        });
      }
      while (made < 30) std::this_thread::yield();
      // Sends without a receive fail the group of a rank that is still in it.
      const std::string destroyed = end_of([&] { group->destroy(std::chrono::seconds(5)); });
      for (std::thread& thread : threads) thread.join();
      ends.push_back(destroyed);
      return ends;
    });
    for (const auto& outcome : ended) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_THAT(outcome.result,
                  Each(AnyOf(HasSubstr("destroyed"),
                             HasSubstr("left the group"),
                             HasSubstr("nothing was thrown"))));
    }
  }
}

TEST_P(ThreadsTest, ACollectiveThatWaitsBehindAnotherHasItsOwnTimeout) {
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(100);
    if (rank == 1) return end_of([&] { group->recv(data, 0); });
    const WorkPtr reduced = group->all_reduce_async(data, {.timeout = std::chrono::minutes(5)});
    return end_of([&] { group->barrier({.timeout = Timeout(200)}); });
  });
  for (const auto& outcome : ended) {
    EXPECT_THAT(outcome.result,
                AllOf(HasSubstr("timeout: barrier on rank 0"),
                      HasSubstr("has not begun within 0.2 s, behind all_reduce #1"),
                      HasSubstr("rank 1")));
  }
}

TEST(AloneTest, AnAbortEndsAGroupOfOneRank) {
  for (const bool sends_first : {false, true}) {
    Job job(Fabric::kMemory, 1);
    const ProcessGroupPtr group = job.join(0);
    std::vector<float> data(10);
    if (sends_first) group->send(data, 0);
    group->abort("enough");
    EXPECT_THAT(end_of([&] { group->all_reduce(data); }), HasSubstr("enough"));
    EXPECT_THAT(end_of([&] { group->send(data, 0); }), HasSubstr("enough"));
  }
}

TEST(AloneTest, AnUnknownAlgorithmIsRejectedInAGroupOfOneRank) {
  Config config;
  config.algorithm = "rign";
  Job job(Fabric::kMemory, 1, config);
  EXPECT_THAT(end_of([&] { job.join(0); }), AllOf(HasSubstr("usage"), HasSubstr("rign")));
}

TEST(MonitoredBarrierTest, ALateRank0StillNamesTheMissingRank) {
  constexpr Timeout timeout = std::chrono::seconds(3);
  Job job(Fabric::kMemory, 3);
  const auto ended = on_ranks(3, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(10);
    if (rank == 2) return end_of([&] { group->recv(data, 0); });  // never comes
    // Later than the second that the other ranks wait for a result, and much earlier than their
    // timeout.
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1250));
    return end_of([&] { group->monitored_barrier({.timeout = timeout}); });
  });
  for (const auto& outcome : ended) EXPECT_THAT(outcome.result, HasSubstr("rank 2 did not come"));
}

TEST(MonitoredBarrierTest, AnInfiniteTimeoutDoesNotOverflow) {
  Job job(Fabric::kMemory, 2);
  const auto ended = on_group(job, [](ProcessGroup& group) {
    group.monitored_barrier({.timeout = Timeout::max()});
    return std::string();
  });
  EXPECT_EQ(complaints(ended), "");
}

TEST_P(ThreadsTest, BlockingCollectivesOfTwoThreadsRunOneAfterTheOther) {
  Job job(GetParam(), 2);
  const auto ended = on_group(job, [](ProcessGroup& group) {
    std::atomic<int> wrong{0};
    // Both have the same shape, because either may come first on a rank.
    const auto reduce_often = [&] {
      for (int i = 0; i < 50; ++i) {
        std::vector<float> data(1'000, 1);
        group.all_reduce(data);
        if (data != std::vector<float>(1'000, 2)) ++wrong;
      }
    };
    std::thread other(reduce_often);
    reduce_often();
    other.join();
    return wrong == 0 ? std::string() : "wrong sums";
  });
  EXPECT_EQ(complaints(ended), "");
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         ThreadsTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
