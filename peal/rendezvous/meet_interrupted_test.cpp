// Who waits for the others to come can be interrupted, wherever they meet and whatever it waits
// for; and who has come already hears of it.
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

/// What a program has of its own to throw, which peal knows nothing of.
struct CtrlC : std::runtime_error {
  CtrlC() : std::runtime_error("Ctrl-C") {}
};

/// How the meeting of one rank ended, which it would wait for longer than the test takes.
struct Ended {
  bool by_ctrl_c = false;
  std::optional<Error> error;
  Duration after{};  // the moment of Ctrl-C
  bool asked_elsewhere = false;
};

/// Much less than the ranks would wait. A longer wait is a hang.
constexpr Duration kHang = seconds(60);
Deadline late() { return Deadline::after(std::chrono::minutes(10)); }

class MeetInterruptedTest : public MeetTest {
 protected:
  /// Attends, and gets its Ctrl-C when that is set.
  Ended attend(const Wish& wish, const testing::Variables& variables = {}) {
    Ended ended;
    const auto here = std::this_thread::get_id();
    const Interrupt interrupt = [&] {
      if (std::this_thread::get_id() != here) ended.asked_elsewhere = true;
      ++asked(wish);
      if (Clock::now() < press_at_.load()) return;
      throw CtrlC();
    };
    try {
      meet(wish, {}, fixed_environment(variables), late(), silent_report(), interrupt);
    } catch (const CtrlC&) {
      ended.by_ctrl_c = true;
    } catch (const Error& error) {
      ended.error = error;
    }
    ended.after = Clock::now() - press_at_.load();
    return ended;
  }

  /// How often the rank was asked for an interrupt.
  std::atomic<int>& asked(const Wish& wish) {
    return asked_[static_cast<std::size_t>(wish.rank.value_or(1))];
  }

  /// Attends, is asked too, and goes on.
  Outcome attend_calmly(const Wish& wish) {
    const Interrupt interrupt = [&] { ++asked(wish); };
    try {
      return {meet(wish, {}, fixed_environment({}), late(), silent_report(), interrupt),
              std::nullopt};
    } catch (const Error& error) {
      return {std::nullopt, error};
    }
  }

  /// A waiting rank is asked every 50 ms. Rank 0 waits only after it has opened the place. Rank 1
  /// may wait before that, and then needs a moment to come in.
  void wait_until_both_wait() {
    const auto wait_until_asked = [this](std::size_t rank, int times) {
      const Deadline patience = soon();
      while (asked_[rank] < times && !patience.passed()) {
        std::this_thread::sleep_for(milliseconds(5));
      }
    };
    wait_until_asked(0, 1);
    wait_until_asked(1, asked_[1] + 3);
  }

  void expect_interrupted(const Wish& wish, const testing::Variables& variables = {}) {
    press_at_ = Clock::now() + kPatience;
    const Ended ended = attend(wish, variables);
    EXPECT_TRUE(ended.by_ctrl_c) << (ended.error ? ended.error->what() : "it met");
    EXPECT_GE(ended.after, Duration(0));
    EXPECT_LT(ended.after, kHang);
    EXPECT_FALSE(ended.asked_elsewhere);
  }

  /// One of the two ranks gets its Ctrl-C when both wait for a third, and the other hears of it.
  void expect_told(const std::string& url,
                   Rank interrupted,
                   std::shared_ptr<store::Store> store = nullptr) {
    const Wish wish{.url = url, .rank = interrupted, .world_size = 3, .store = std::move(store)};
    press_at_ = TimePoint::max();
    for (auto& asked : asked_) asked = 0;
    auto other = std::async(std::launch::async, [this, other = wish]() mutable {
      other.rank = 1 - *other.rank;
      return attend_calmly(other);
    });
    auto own = std::async(std::launch::async, [&] { return attend(wish); });
    wait_until_both_wait();
    press_at_ = Clock::now();
    const Outcome told = other.get();
    EXPECT_LT(Clock::now() - press_at_.load(), kHang);
    const Ended ended = own.get();
    EXPECT_TRUE(ended.by_ctrl_c) << (ended.error ? ended.error->what() : "it met");
    EXPECT_LT(ended.after, kHang);
    ASSERT_TRUE(told.error);
    EXPECT_EQ(told.error->kind(), ErrorKind::kPeerLost) << told.error->what();
    EXPECT_THAT(std::string(told.error->message()),
                AllOf(HasSubstr("rank " + std::to_string(interrupted) + " (process "),
                      HasSubstr("was interrupted before all ranks had met"),
                      HasSubstr("Ctrl-C")));
  }

  static constexpr auto kPatience = milliseconds(300);

  std::atomic<TimePoint> press_at_ = TimePoint::max();
  std::array<std::atomic<int>, 2> asked_ = {};
};

TEST_F(MeetInterruptedTest, WhereRankZeroDoesNotServeYet) {
  expect_interrupted({.url = free_url(), .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereTheEnvironmentLeads) {
  expect_interrupted({},
                     {{"RANK", "1"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", free_port()}});
}

TEST_F(MeetInterruptedTest, WhereSomebodyIsAtTheMastersPortWhoDoesNotAnswer) {
  const Fd silent = net::listen_on(net::Address::parse("127.0.0.1:0"));
  expect_interrupted(
      {.url = "tcp://" + net::local_address(silent.get()).to_string(), .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereTheMastersNameIsNotKnownYet) {
  expect_interrupted({.url = "tcp://no-such-host.invalid:29500", .rank = 1, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereRankZeroWaitsForTheOthers) {
  expect_interrupted({.url = free_url(), .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereTheyMeetInAFile) {
  expect_interrupted({.url = "file://" + path_, .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereTheFileServesAnotherJob) {
  const auto other = store::open_file_store(path_, {.members = 1, .timeout = seconds(60)}, soon());
  expect_interrupted({.url = "file://" + path_, .rank = 0, .world_size = 2});
}

TEST_F(MeetInterruptedTest, WhereTheyMeetInAStoreThatIsGiven) {
  expect_interrupted({.rank = 0, .world_size = 2, .store = store::make_memory_store()});
}

TEST_F(MeetInterruptedTest, WhoHasComeHearsOfItAtAPort) {
  for (const Rank rank : {0, 1}) expect_told(free_url(), rank);
}

TEST_F(MeetInterruptedTest, WhoHasComeHearsOfItInAFile) {
  for (const Rank rank : {0, 1}) expect_told("file://" + path_, rank);
}

TEST_F(MeetInterruptedTest, WhoHasComeHearsOfItInAStoreThatIsGiven) {
  for (const Rank rank : {0, 1}) expect_told("env://", rank, store::make_memory_store());
}

TEST_F(MeetInterruptedTest, WhoIsNotInterruptedMeets) {
  auto other = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(kPatience);
    return testing::attend({{.url = "file://" + path_, .rank = 1, .world_size = 2}}, soon());
  });
  const Ended ended = attend({.url = "file://" + path_, .rank = 0, .world_size = 2});
  EXPECT_FALSE(ended.by_ctrl_c);
  EXPECT_FALSE(ended.error);
  EXPECT_TRUE(other.get().meeting);
}

}  // namespace
}  // namespace peal::rendezvous
