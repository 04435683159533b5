// One group in the hands of several threads of a process: whatever they do at the same moment, each
// call ends, well or with the group's cause.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ThreadsTest : public ::testing::TestWithParam<Fabric> {};

/// What the call ended with; empty if well.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_P(ThreadsTest, DestroyEndsWhatOtherThreadsAreBlockedIn) {
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    if (rank == 1) {
      // Nothing is said to rank 0 until it has given up.
      std::vector<float> data(1);
      return error_of([&] { group->recv(data, 0); });
    }
    std::vector<float> data(100);
    std::vector<float> more(100);
    const WorkPtr queued = group->all_reduce_async(data);  // rank 1 never joins
    std::string received;
    std::thread receiver([&] { received = error_of([&] { group->recv(more, 1); }); });
    const std::string destroyed = error_of([&] { group->destroy(Timeout(200)); });
    receiver.join();
    EXPECT_THAT(received, HasSubstr("destroyed"));
    EXPECT_THAT(error_of([&] { queued->wait(); }), HasSubstr("with collectives under way"));
    return destroyed;
  });
  for (const auto& outcome : ended) {
    EXPECT_THAT(outcome.result, HasSubstr("destroyed on rank 0 with collectives under way"));
  }
}

TEST_P(ThreadsTest, AbortFreesAThreadThatIsInDestroy) {
  Job job(GetParam(), 2);
  std::atomic<bool> may_leave{false};
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    if (rank == 1) {
      while (!may_leave) std::this_thread::yield();
      return std::string();
    }
    std::vector<float> data(100);
    const WorkPtr reduced = group->all_reduce_async(data);
    std::thread destroyer([&] { group->destroy(std::chrono::minutes(5)); });
    group->abort("enough");
    destroyer.join();
    may_leave = true;
    return error_of([&] { reduced->wait(); });
  });
  EXPECT_THAT(ended[0].result, HasSubstr("enough"));
}

TEST_P(ThreadsTest, CallsThatRaceWithDestroyEndWellOrSayThatItIsDestroyed) {
  for (int round = 0; round < 20; ++round) {
    Job job(GetParam(), 1 + round % 3);
    on_ranks(job.ranks(), [&](Rank rank) {
      const ProcessGroupPtr group = job.join(rank);
      const std::vector<float> data(10);  // outlives the sends that nobody waits for
      std::vector<std::thread> threads;
      std::atomic<int> calls{0};
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          std::string error;
          while (error.empty()) {
            error = error_of([&] {
              const Rank peer = (rank + 1) % group->size();
              if (t == 0) group->barrier(std::chrono::seconds(30));
              if (t == 1) group->isend(data, peer);
              if (t == 2) group->allocate(64_B);
            });
            ++calls;
          }
          EXPECT_THAT(error, AnyOf(HasSubstr("destroyed"), HasSubstr("left the group"))) << t;
        });
      }
      while (calls < 30) std::this_thread::yield();
      error_of([&] { group->destroy(std::chrono::seconds(5)); });
      for (std::thread& thread : threads) thread.join();
      return 0;
    });
  }
}

TEST_P(ThreadsTest, BlockingCollectivesOfTwoThreadsAreCarriedOutOneAfterTheOther) {
  Job job(GetParam(), 2);
  const auto ended = on_group(job, [](ProcessGroup& group) {
    // Of the same shape, since nothing says which of the two comes first on a rank.
    const auto reduce_often = [&group] {
      for (int i = 0; i < 50; ++i) {
        std::vector<float> data(1'000, 1);
        group.all_reduce(data);
        EXPECT_THAT(data, ::testing::Each(2.F));
      }
    };
    std::thread other(reduce_often);
    reduce_often();
    other.join();
    return std::string();
  });
  EXPECT_EQ(complaints(ended), "");
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         ThreadsTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
