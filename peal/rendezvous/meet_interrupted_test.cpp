// Interrupts a rank that waits for the others, at each kind of place and in each phase. Ranks that
// have come already must be notified.
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/testing/meetings.h"
#include "peal/store/file_store.h"
#include "peal/store/memory_store.h"

namespace peal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MeetTest;
using testing::Outcome;

/// An exception type of the application, unknown to peal.
struct CtrlC : std::runtime_error {
  CtrlC() : std::runtime_error("Ctrl-C") {}
};

/// How the meeting of one rank ended. Without an interrupt it would outlast the test.
struct Ended {
  bool by_ctrl_c = false;
  std::optional<Error> error;
  Duration after{};              // since Ctrl-C
  bool asked_elsewhere = false;  // the interrupt was called on another thread
};

/// Much less than the ranks would wait. A longer wait is a hang.
constexpr Duration kHang = seconds(60);
Deadline late() { return Deadline::after(std::chrono::minutes(10)); }

class MeetInterruptedTest : public MeetTest {
 protected:
  /// Attends, and throws CtrlC from `press_at_` on.
  Ended attend(const MeetRequest& request, const testing::Variables& variables = {}) {
    Ended ended;
    const auto here = std::this_thread::get_id();
    const Interrupt interrupt = [&] {
      if (std::this_thread::get_id() != here) ended.asked_elsewhere = true;
      ++asked(request);
      if (Clock::now() < press_at_.load()) return;
      throw CtrlC();
    };
    try {
      meet(request, {}, fixed_environment(variables), late(), silent_report(), interrupt);
    } catch (const CtrlC&) {
      ended.by_ctrl_c = true;
    } catch (const Error& error) {
      ended.error = error;
    }
    ended.after = Clock::now() - press_at_.load();
    return ended;
  }

  /// How often the rank was asked for an interrupt.
  std::atomic<int>& asked(const MeetRequest& request) {
    return asked_[static_cast<std::size_t>(request.rank.value_or(1))];
  }

  /// Attends with an interrupt that never throws.
  Outcome attend_calmly(const MeetRequest& request) {
    const Interrupt interrupt = [&] { ++asked(request); };
    try {
      return {meet(request, {}, fixed_environment({}), late(), silent_report(), interrupt),
              std::nullopt};
    } catch (const Error& error) {
      return {std::nullopt, error};
    }
  }

  /// A waiting rank calls the interrupt every 50 ms. Rank 0 waits only after it has opened the
  /// place. Rank 1 may wait before that, and then needs a moment to join.
  void wait_until_both_wait() {
    const auto wait_until_asked = [this](std::size_t rank, int times) {
      const Deadline limit = soon();
      while (asked_[rank] < times && !limit.passed()) {
        std::this_thread::sleep_for(milliseconds(5));
      }
    };
    wait_until_asked(0, 1);
    wait_until_asked(1, asked_[1] + 3);
  }

  void expect_interrupted(const MeetRequest& request, const testing::Variables& variables = {}) {
    press_at_ = Clock::now() + kLimit;
    const Ended ended = attend(request, variables);
    EXPECT_TRUE(ended.by_ctrl_c) << (ended.error ? ended.error->what() : "it met");
    EXPECT_GE(ended.after, Duration(0));
    EXPECT_LT(ended.after, kHang);
    EXPECT_FALSE(ended.asked_elsewhere);
  }

  /// Interrupts one of two ranks while both wait for a third. The other rank must be notified.
  void expect_notified(const std::string& url,
                       Rank interrupted,
                       std::shared_ptr<store::Store> store = nullptr) {
    const MeetRequest request{
        .url = url, .rank = interrupted, .world_size = 3, .store = std::move(store)};
    press_at_ = TimePoint::max();
    for (auto& asked : asked_) asked = 0;
    auto other = std::async(std::launch::async, [this, other = request]() mutable {
      other.rank = 1 - *other.rank;
      return attend_calmly(other);
    });
    auto own = std::async(std::launch::async, [&] { return attend(request); });
    wait_until_both_wait();
    press_at_ = Clock::now();
    const Outcome notified = other.get();
    EXPECT_LT(Clock::now() - press_at_.load(), kHang);
    const Ended ended = own.get();
    EXPECT_TRUE(ended.by_ctrl_c) << (ended.error ? ended.error->what() : "it met");
    EXPECT_LT(ended.after, kHang);
    ASSERT_TRUE(notified.error);
    EXPECT_EQ(notified.error->kind(), ErrorKind::kAborted) << notified.error->what();
    EXPECT_THAT(std::string(notified.error->message()),
                AllOf(HasSubstr("rank " + std::to_string(interrupted) + " (process "),
                      HasSubstr("was interrupted before all ranks had met"),
                      HasSubstr("Ctrl-C")));
  }

  static constexpr auto kLimit = milliseconds(300);

  std::atomic<TimePoint> press_at_ = TimePoint::max();
  std::array<std::atomic<int>, 2> asked_ = {};
};

TEST_F(MeetInterruptedTest, InterruptEndsTheWaitForRankZeroToServe) {
  expect_interrupted({.url = free_url(), .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsAMeetingByTheEnvironment) {
  expect_interrupted({},
                     {{"RANK", "1"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", free_port()}});
}

TEST_F(MeetInterruptedTest, InterruptEndsTheWaitForAMasterThatDoesNotAnswer) {
  const Fd silent = net::listen_on(net::Address::parse("127.0.0.1:0"));
  expect_interrupted(
      {.url = "tcp://" + net::local_address(silent.get()).to_string(), .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsTheWaitForTheMastersName) {
  expect_interrupted({.url = "tcp://no-such-host.invalid:29500", .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsRankZerosWaitForTheOthers) {
  expect_interrupted({.url = free_url(), .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsAMeetingInAFile) {
  expect_interrupted({.url = "file://" + path_, .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsTheWaitForAFileThatServesAnotherJob) {
  const auto other = store::open_file_store(path_, {.members = 1, .timeout = seconds(60)}, soon());
  expect_interrupted({.url = "file://" + path_, .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, InterruptEndsAMeetingInAGivenStore) {
  expect_interrupted({.rank = 0, .world_size = 2, .store = store::make_memory_store()});
}

TEST_F(MeetInterruptedTest, RanksAtAPortAreNotifiedOfTheInterrupt) {
  for (const Rank rank : {0, 1}) expect_notified(free_url(), rank);
}

TEST_F(MeetInterruptedTest, RanksInAFileAreNotifiedOfTheInterrupt) {
  for (const Rank rank : {0, 1}) expect_notified("file://" + path_, rank);
}

TEST_F(MeetInterruptedTest, RanksInAGivenStoreAreNotifiedOfTheInterrupt) {
  for (const Rank rank : {0, 1}) expect_notified("env://", rank, store::make_memory_store());
}

TEST_F(MeetInterruptedTest, RanksMeetIfTheInterruptDoesNotThrow) {
  auto other = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(kLimit);
    return testing::attend({{.url = "file://" + path_, .rank = 1, .world_size = 2}}, soon());
  });
  const Ended ended = attend({.url = "file://" + path_, .rank = 0, .world_size = 2});
  EXPECT_FALSE(ended.by_ctrl_c);
  EXPECT_FALSE(ended.error);
  EXPECT_TRUE(other.get().meeting);
}

}  // namespace
}  // namespace peal::rendezvous
