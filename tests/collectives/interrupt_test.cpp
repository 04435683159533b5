// An exception from InitOptions::interrupt ends a waiting call: long before the timeout, on the
// calling thread, and on all ranks. peal/rendezvous/meet_interrupted_test.cpp tests meetings.
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/init/init.h"
#include "peal/store/memory_store.h"

#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::vector<float>;

constexpr auto kLimit = milliseconds(200);
/// Without an interrupt a call would last until the timeout of its group, an hour.
constexpr auto kHang = std::chrono::minutes(5);

/// Ctrl-C of one rank. Records which threads asked for it.
class Key {
 public:
  std::function<void()> interrupt() {
    return [this] {
      if (std::this_thread::get_id() != owner_) asked_elsewhere_ = true;
      if (Clock::now() >= at_.load()) throw Error(ErrorKind::kPeerLost, "Ctrl-C");
    };
  }
  /// Called by the rank's thread: the key is pressed in a moment.
  void press_soon() { at_ = Clock::now() + kLimit; }

  TimePoint at() const { return at_; }
  bool was_asked_elsewhere() const { return asked_elsewhere_; }

 private:
  std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<TimePoint> at_ = TimePoint::max();
  std::atomic<bool> asked_elsewhere_ = false;
};

/// The error of a rank and its time. Rank 0 is interrupted after its key is pressed.
struct Ended {
  std::string error;
  TimePoint at;
};

class InterruptTest : public ::testing::Test {
 protected:
  ProcessGroupPtr join(Rank rank, int ranks, std::function<void()> interrupt = {}) const {
    InitOptions options;
    options.store = store_;
    options.rank = rank;
    options.world_size = ranks;
    options.interrupt = std::move(interrupt);
    return init_process_group(options);
  }

  /// Rank 0 of two is interrupted in `blocked`, while rank 1 does `beside`. Both must end.
  void expect_both_end(const std::function<void(ProcessGroup&)>& blocked,
                       const std::function<void(ProcessGroup&)>& beside) const {
    std::atomic<TimePoint> pressed;
    std::barrier both_have_joined(2);
    const auto ends = on_ranks(2, [&](Rank rank) {
      Key key;
      const ProcessGroupPtr group = join(rank, 2, key.interrupt());
      both_have_joined.arrive_and_wait();
      if (rank == 0) {
        key.press_soon();
        pressed = key.at();
      }
      Ended ended;
      try {
        rank == 0 ? blocked(*group) : beside(*group);
      } catch (const Error& error) {
        ended.error = error.message();
      }
      ended.at = Clock::now();
      if (key.was_asked_elsewhere()) ended.error += ", asked on another thread";
      return ended;
    });
    for (const auto& end : ends) {
      EXPECT_EQ(end.error, "");
      EXPECT_THAT(end.result.error, HasSubstr("rank 0 was interrupted: Ctrl-C"));
      EXPECT_THAT(end.result.error, Not(HasSubstr("asked on another thread")));
      EXPECT_GE(end.result.at, pressed.load());
      EXPECT_LT(end.result.at - pressed.load(), kHang);
    }
  }

  std::shared_ptr<store::Store> store_ = store::make_memory_store();
};

void receive_nothing(ProcessGroup& group) {
  Values values(10);
  group.recv(values, 1 - group.rank(), {.tag = Tag{7}});
}

TEST_F(InterruptTest, ACollectiveThatWaitsForAPeerEnds) {
  expect_both_end([](ProcessGroup& group) { group.barrier(); }, receive_nothing);
}

TEST_F(InterruptTest, ACollectiveBehindAnotherThatWaitsEndsWithTheSameError) {
  expect_both_end(
      [](ProcessGroup& group) {
        Values values(10);
        const WorkPtr first = group.all_reduce_async(values);
        Values more(10);
        try {
          group.all_reduce(more);
        } catch (const Error&) {
          EXPECT_NE(first->exception(), nullptr);
          throw;
        }
      },
      receive_nothing);
}

TEST_F(InterruptTest, AReceiveWithoutASendEnds) {
  expect_both_end(receive_nothing, receive_nothing);
}

TEST_F(InterruptTest, ASendWithoutAReceiveEnds) {
  expect_both_end(
      [](ProcessGroup& group) {
        const Values values(10'000'000);
        group.send(values, 1);
      },
      receive_nothing);
}

TEST_F(InterruptTest, AMonitoredBarrierThatWaitsForAPeerEnds) {
  const auto enter = [](ProcessGroup& group) {
    group.monitored_barrier({.timeout = std::chrono::minutes(10)});
  };
  expect_both_end(enter, receive_nothing);
}

/// A handler of SIGTERM often ends the group. Inside an operation this would wait for its own
/// stack.
TEST_F(InterruptTest, ACallThatWouldWaitForItsOwnStackIsRejected) {
  using Call = std::function<void(ProcessGroup&)>;
  const Call calls[] = {
      [](ProcessGroup& group) { group.destroy(); },
      [](ProcessGroup& group) { group.barrier(); },
      [](ProcessGroup& group) {
        Values values(3);
        group.all_reduce_async(values)->wait();
      },
      [](ProcessGroup& group) { receive_nothing(group); },
      [](ProcessGroup& group) { group.split(0); },
  };
  const Call blocked[] = {[](ProcessGroup& group) { group.barrier(); }, receive_nothing};
  for (const Call& call : calls) {
    for (const Call& wait : blocked) {
      store_ = store::make_memory_store();
      std::barrier both_have_joined(2);
      const auto ends = on_ranks(2, [&](Rank rank) {
        ProcessGroupPtr group;
        bool is_armed = false;
        group = join(rank, 2, [&] {
          if (is_armed) call(*group);
        });
        both_have_joined.arrive_and_wait();
        is_armed = rank == 0;
        try {
          rank == 0 ? wait(*group) : receive_nothing(*group);
        } catch (const Error& error) {
          return std::string(error.what());
        }
        return std::string();
      });
      for (const auto& end : ends) {
        EXPECT_EQ(end.error, "");
        EXPECT_THAT(end.result, HasSubstr("runs inside an operation of the group world"));
      }
    }
  }
}

TEST_F(InterruptTest, AHandlerMayAbortTheGroup) {
  std::barrier both_have_joined(2);
  const auto ends = on_ranks(2, [&](Rank rank) {
    ProcessGroupPtr group;
    bool is_armed = false;
    group = join(rank, 2, [&] {
      if (is_armed) group->abort("the job is preempted");
    });
    both_have_joined.arrive_and_wait();
    is_armed = rank == 0;
    try {
      rank == 0 ? group->barrier() : receive_nothing(*group);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  for (const auto& end : ends) EXPECT_THAT(end.result, HasSubstr("the job is preempted"));
}

TEST_F(InterruptTest, ADestroyThatWaitsForACollectiveEnds) {
  expect_both_end(
      [](ProcessGroup& group) {
        Values values(10);
        const WorkPtr work = group.all_reduce_async(values);
        group.destroy();
      },
      receive_nothing);
}

TEST_F(InterruptTest, ADestroyThatWaitsForALargeSendEnds) {
  std::barrier both_have_joined(2);
  std::latch rank_0_has_left(1);
  const auto ends = on_ranks(2, [&](Rank rank) -> std::string {
    Key key;
    const ProcessGroupPtr group = join(rank, 2, key.interrupt());
    both_have_joined.arrive_and_wait();
    if (rank == 1) {
      rank_0_has_left.wait();  // receives nothing, and stays
      return "";
    }
    const Values values(10'000'000);
    const Arrival when_it_has_ended(rank_0_has_left);
    try {
      const WorkPtr work = group->isend(values, 1);
      key.press_soon();
      group->destroy();
    } catch (const Error& error) {
      return Clock::now() - key.at() > kHang ? "late" : error.what();
    }
    return "";
  });
  for (const auto& end : ends) EXPECT_EQ(end.error, "");
  EXPECT_THAT(ends[0].result, HasSubstr("Ctrl-C"));
}

TEST_F(InterruptTest, AWorkIsWaitedForInTurnsSoThatTheCallerCanCallItsInterrupt) {
  const auto ends = on_ranks(2, [&](Rank rank) {
    int asked = 0;
    const ProcessGroupPtr group = join(rank, 2, [&] { ++asked; });
    group->barrier();
    const int before = asked;
    Values values(10);
    const Values sent(10);
    const WorkPtr work = group->irecv(values, 1 - rank);
    EXPECT_THROW(work->wait(kLimit), Error);
    EXPECT_FALSE(work->is_completed());
    const bool was_asked = asked != before;
    group->barrier();
    const WorkPtr sending = group->isend(sent, 1 - rank);
    work->wait();
    sending->wait();
    return was_asked;
  });
  for (const auto& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_FALSE(end.result);
  }
}

TEST_F(InterruptTest, TheCreationOfASubgroupEndsForAllItsRanks) {
  const Rank both[] = {0, 1};
  std::latch rank_0_has_ended(1);
  expect_both_end(
      [&](ProcessGroup& group) {
        const Arrival when_it_has_ended(rank_0_has_ended);
        group.new_group(both);
      },
      [&](ProcessGroup& group) {
        rank_0_has_ended.wait();
        group.new_group(both);
      });
}

TEST_F(InterruptTest, ASubgroupHasTheInterruptOfItsWorld) {
  std::barrier both_have_joined(2);
  const auto ends = on_ranks(2, [&](Rank rank) -> std::string {
    Key key;
    const ProcessGroupPtr group = join(rank, 2, key.interrupt());
    const Rank both[] = {0, 1};
    const ProcessGroupPtr part = group->new_group(both);
    both_have_joined.arrive_and_wait();
    if (rank == 0) key.press_soon();
    try {
      rank == 0 ? part->barrier() : receive_nothing(*part);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
  for (const auto& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_THAT(end.result, HasSubstr("Ctrl-C"));
  }
}

TEST_F(InterruptTest, AnInterruptEndsTheWaitForMissingRanks) {
  Key key;
  key.press_soon();
  EXPECT_THROW(join(0, 2, key.interrupt()), Error);
  EXPECT_LT(Clock::now() - key.at(), kHang);
}

TEST_F(InterruptTest, AnInterruptMayThrowAnyType) {
  struct Nothing {};
  const auto ends = on_ranks(2, [&](Rank rank) -> std::string {
    std::atomic<bool> pressed = false;
    const ProcessGroupPtr group = join(rank, 2, [&] {
      if (pressed) throw Nothing();
    });
    try {
      group->barrier();  // rank 1 may still be in it
      pressed = rank == 0;
      rank == 0 ? group->barrier() : receive_nothing(*group);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
  for (const auto& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_THAT(
        end.result,
        HasSubstr("aborted: rank 0 was interrupted: an interrupt threw something that is not an "
                  "exception"));
  }
}

TEST_F(InterruptTest, TheInterruptIsNotCalledWhenAGroupEndsByItsLastReference) {
  const auto ends = on_ranks(2, [&](Rank rank) {
    std::atomic<bool> is_asked_to_the_end = false;
    std::atomic<int> asked = 0;
    ProcessGroupPtr group = join(rank, 2, [&] {
      if (is_asked_to_the_end) ++asked;
    });
    group->barrier();
    Values values(10);
    const WorkPtr work = rank == 0 ? group->all_reduce_async(values) : nullptr;
    if (rank == 1) std::this_thread::sleep_for(2 * kLimit);  // rank 0 waits for it meanwhile
    is_asked_to_the_end = true;
    group.reset();
    return asked.load();
  });
  for (const auto& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_EQ(end.result, 0);
  }
}

TEST_F(InterruptTest, AnInterruptThatThrowsNothingChangesNothing) {
  std::atomic<bool> rank_0_has_joined = false;
  std::atomic<bool> rank_0_was_asked = false;
  const auto ends = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = join(rank, 2, [&, rank] {
      if (rank == 0 && rank_0_has_joined) rank_0_was_asked = true;
    });
    if (rank == 0) rank_0_has_joined = true;
    const Deadline limit = Deadline::after(kHang);
    while (rank == 1 && !rank_0_was_asked && !limit.passed()) {  // rank 0 waits for rank 1
      std::this_thread::sleep_for(milliseconds(1));
    }
    Values values(1000, 1);
    group->all_reduce(values);
    group->destroy();
    return values == Values(1000, 2);
  });
  for (const auto& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_TRUE(end.result);
  }
  EXPECT_TRUE(rank_0_was_asked);
}

}  // namespace
}  // namespace peal::testing
