// One timeout for all waits of a group: to meet, to connect and in every operation. A call may have
// its own timeout. No wait ends before its timeout, and none lasts until another, longer one.
#include <chrono>
#include <functional>
#include <latch>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/init/init.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/transport/link/connect.h"

#include "tests/support/processes.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr Timeout kShort{300};
/// The timeout of a group whose ranks have to meet first. The meeting takes some 10 ms.
constexpr Timeout kTimeToMeet{3000};
constexpr Timeout kLong = std::chrono::minutes(10);
/// Much less than kLong: a call with a shorter timeout must not wait so long.
constexpr Duration kHang = std::chrono::minutes(5);

/// Two ranks as threads, which meet at a file. Rank 0 waits.
class TimeoutsTest : public ::testing::Test {
 protected:
  ProcessGroupPtr join(Rank rank, Timeout timeout) const {
    InitOptions options;
    options.init_method = place();
    options.rank = rank;
    options.world_size = 2;
    options.timeout = timeout;
    return init_process_group(options);
  }

  /// Takes part in the meeting, and in nothing after it.
  rendezvous::Meeting meet_as_rank_1() const {
    const rendezvous::MeetRequest request{.url = place(), .rank = 1, .world_size = 2};
    return rendezvous::meet(request, Config(), process_environment(), Deadline::after(kLong));
  }

  /// Returns the outcome of rank 0. Rank 1 stays until rank 0 has ended, so that it cannot cause
  /// the error.
  Outcome<Duration> time_of_rank_0(const std::function<void(TimePoint&)>& rank_0,
                                   const std::function<void(std::latch& done)>& rank_1) const {
    std::latch done(1);
    auto outcomes = on_ranks(2, [&](Rank rank) -> Duration {
      if (rank == 1) {
        rank_1(done);
        return {};
      }
      TimePoint start = Clock::now();
      try {
        rank_0(start);
      } catch (const Error& error) {
        took_ = Clock::now() - start;
        done.count_down();
        throw;
      }
      done.count_down();
      return Clock::now() - start;
    });
    EXPECT_EQ(outcomes[1].error, "");
    return outcomes[0];
  }

  void expect_timeout(const Outcome<Duration>& rank_0,
                      const std::string& text,
                      Timeout timeout = kShort) const {
    EXPECT_EQ(rank_0.kind, ErrorKind::kTimeout) << rank_0.error;
    EXPECT_THAT(rank_0.error, HasSubstr(text));
    EXPECT_GE(took_, timeout);
    EXPECT_LT(took_, timeout + kHang);
  }

  /// A call with a short timeout, in a group with a long one.
  void expect_own_timeout_of(const std::function<void(ProcessGroup&)>& call,
                             const std::string& text) {
    const auto rank_0 = time_of_rank_0(
        [&](TimePoint& start) {
          const ProcessGroupPtr group = join(0, kLong);
          start = Clock::now();
          call(*group);
        },
        [&](std::latch& done) {
          const ProcessGroupPtr group = join(1, kLong);
          done.wait();
        });
    expect_timeout(rank_0, text);
  }

 private:
  std::string place() const { return "file://" + folder_.path() + "/meeting"; }

  const TemporaryFolder folder_;
  mutable Duration took_{};
};

std::vector<float> some() { return std::vector<float>(100, 1); }

TEST_F(TimeoutsTest, TheMeetingEndsAtTheTimeoutOfTheGroup) {
  const auto rank_0 = time_of_rank_0([&](TimePoint&) { join(0, kShort); }, [](std::latch&) {});
  expect_timeout(rank_0, "1 of 2 ranks did not join the group in time: rank 1");
}

TEST_F(TimeoutsTest, TheWaitForAPeersAddressEndsAtTheTimeoutOfTheGroup) {
  const auto rank_0 = time_of_rank_0([&](TimePoint&) { join(0, kTimeToMeet); },
                                     [&](std::latch& done) {
                                       const rendezvous::Meeting meeting = meet_as_rank_1();
                                       done.wait();
                                     });
  expect_timeout(
      rank_0, "1 of 2 ranks did not publish their addresses in time: rank 1", kTimeToMeet);
}

TEST_F(TimeoutsTest, TheConnectionEndsAtTheTimeoutOfTheGroup) {
  const auto rank_0 = time_of_rank_0([&](TimePoint&) { join(0, kTimeToMeet); },
                                     [&](std::latch& done) {
                                       const rendezvous::Meeting meeting = meet_as_rank_1();
                                       const auto store =
                                           rendezvous::group_store(meeting.store, "world");
                                       transport::ConnectOptions options;
                                       options.rank = 1;
                                       options.size = 2;
                                       const auto pending = transport::open(options);
                                       rendezvous::publish(*store, 1, pending->contact());
                                       done.wait();
                                     });
  expect_timeout(rank_0, "did not connect to rank 0 in time: rank 1", kTimeToMeet);
}

TEST_F(TimeoutsTest, AnOperationEndsAtTheTimeoutOfTheGroup) {
  const auto rank_0 = time_of_rank_0(
      [&](TimePoint& start) {
        const ProcessGroupPtr group = join(0, kTimeToMeet);
        auto data = some();
        start = Clock::now();
        group->all_reduce(data);
      },
      [&](std::latch& done) {
        const ProcessGroupPtr group = join(1, kTimeToMeet);
        done.wait();
      });
  expect_timeout(rank_0, "all_reduce", kTimeToMeet);
}

TEST_F(TimeoutsTest, ACollectiveEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        auto data = some();
        group.all_reduce(data, {.timeout = kShort});
      },
      "all_reduce");
}

TEST_F(TimeoutsTest, AnAsynchronousCollectiveEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        auto data = some();
        group.all_reduce_async(data, {.timeout = kShort})->wait();
      },
      "all_reduce");
}

TEST_F(TimeoutsTest, AReceiveEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        auto data = some();
        group.recv(data, 1, {.tag = Tag{3}, .timeout = kShort});
      },
      "recv of 100 f32 from rank 1, tag 3");
}

TEST_F(TimeoutsTest, ASendWithoutAReceiveEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        const std::vector<float> data(10'000'000, 1);  // more than fits between the two
        group.send(data, 1, {.tag = Tag{3}, .timeout = kShort});
      },
      "send of 10000000 f32 to rank 1, tag 3");
}

TEST_F(TimeoutsTest, ABarrierEndsAtItsOwnTimeout) {
  expect_own_timeout_of([](ProcessGroup& group) { group.barrier({.timeout = kShort}); }, "barrier");
}

TEST_F(TimeoutsTest, TheWaitForASubGroupEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        const std::vector<Rank> all = {0, 1};
        group.new_group(all, kShort);
      },
      "1 of 2 ranks did not publish their addresses in time: rank 1");
}

TEST_F(TimeoutsTest, ADestroyEndsAtItsOwnTimeout) {
  expect_own_timeout_of(
      [](ProcessGroup& group) {
        auto data = some();
        const WorkPtr work = group.all_reduce_async(data);
        group.destroy(kShort);
      },
      "was destroyed on rank 0 while collectives were running");
}

TEST_F(TimeoutsTest, ACallMayHaveMoreTimeThanItsGroup) {
  constexpr Duration late = kTimeToMeet + kShort;
  std::latch rank_0_waits(1);
  const auto rank_0 = time_of_rank_0(
      [&](TimePoint& start) {
        const ProcessGroupPtr group = join(0, kTimeToMeet);
        auto data = some();
        start = Clock::now();
        rank_0_waits.count_down();
        group->all_reduce(data, {.timeout = kLong});
        group->destroy(kLong);
      },
      [&](std::latch&) {
        const ProcessGroupPtr group = join(1, kTimeToMeet);
        rank_0_waits.wait();
        std::this_thread::sleep_for(late);
        auto data = some();
        group->all_reduce(data, {.timeout = kLong});
        group->destroy(kLong);
      });
  EXPECT_EQ(rank_0.error, "");
  EXPECT_GE(rank_0.result, late);
}

/// Small messages are sent without their receives until the receiver keeps all that it may.
TEST_F(TimeoutsTest, ASmallSendThatIsHeldBackTimesOutAndTheErrorSaysWhy) {
  for (const Rank to : {1, 0}) {
    const auto rank_0 = time_of_rank_0(
        [&](TimePoint& start) {
          const ProcessGroupPtr group = join(0, kLong);
          const std::vector<float> message(4'096, 1);
          for (int i = 0; i < 10'000; ++i) {
            start = Clock::now();
            group->send(message, to, {.tag = Tag{3}, .timeout = kShort});
          }
        },
        [&](std::latch& done) {
          const ProcessGroupPtr group = join(1, kLong);
          done.wait();
        });
    const std::string receiver = "rank " + std::to_string(to);
    expect_timeout(rank_0, "send of 4096 f32 to " + receiver);
    // The bound is 16 MiB. Each message counts 16 KiB and 256 bytes.
    EXPECT_THAT(rank_0.error,
                HasSubstr("; it is held back, since up to 1008 messages to " + receiver +
                          " before it (15.8 MiB) wait for their receives"));
  }
}

}  // namespace
}  // namespace peal::testing
