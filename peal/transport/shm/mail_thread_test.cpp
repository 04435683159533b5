// One thread for the mail of several groups: two ranks as threads of this process, with as many
// groups as a test wants.
#include "peal/transport/shm/mail_thread.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/guarded.h"
#include "peal/base/testing/idle_child.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using testing::bytes_of;
using testing::send_all;
using testing::test_deadline;

/// The member of rank 0 for one group: it records each round.
class Noting final : public MailThread::Member {
 public:
  explicit Noting(std::vector<Interest> interests) : interests_(std::move(interests)) {}

  TimePoint round(std::vector<Interest>& interests) noexcept override {
    if (body) body();
    rounds_.update([](Counted& counted) {
      ++counted.rounds;
      counted.thread = std::this_thread::get_id();
    });
    interests = interests_;
    return TimePoint::max();
  }

  int rounds() {
    return rounds_.with([](const Counted& counted) { return counted.rounds; });
  }
  std::thread::id thread() {
    return rounds_.with([](const Counted& counted) { return counted.thread; });
  }
  bool wait_for_rounds(int least) {
    return rounds_.wait(
        test_deadline(),
        [least](const Counted& counted) { return counted.rounds >= least; },
        [](const Counted&) {});
  }

  std::function<void()> body;

 private:
  struct Counted {
    int rounds = 0;
    std::thread::id thread;
  };

  const std::vector<Interest> interests_;
  Guarded<Counted> rounds_;
};

/// Groups of the same two ranks. `mail_thread_` waits for the mail of rank 0.
class MailThreadTest : public ::testing::Test {
 protected:
  static constexpr int kGroups = 3;

  struct Group {
    std::vector<std::unique_ptr<Transport>> ranks;
    std::unique_ptr<Noting> noting = std::make_unique<Noting>(
        std::vector<Interest>{{.peer = 1, .readiness = Readiness::kReadable}});

    RingChannel& channel() const { return ranks[0]->shared_mail()->channel; }
  };

  MailThreadTest() {
    for (int i = 0; i < kGroups; ++i) {
      groups_.push_back({make_memory_transports(
          2, {.arena = 1_MiB, .mail_threads = {mail_thread_, std::make_shared<MailThread>()}})});
    }
  }
  ~MailThreadTest() override {
    for (const Group& group : groups_) mail_thread_->remove(*group.noting);
  }

  void add_all() {
    for (const Group& group : groups_) mail_thread_->add(group.channel(), *group.noting);
    for (const Group& group : groups_) ASSERT_TRUE(group.noting->wait_for_rounds(1));
  }
  void send(const Group& group) {
    send_all(group.ranks[1]->mail(), 0, bytes_of("x"), test_deadline());
  }

  const std::shared_ptr<MailThread> mail_thread_ = std::make_shared<MailThread>();
  std::vector<Group> groups_;
};

TEST_F(MailThreadTest, AMessageCausesARoundOfItsGroupOnTheOneThread) {
  add_all();
  for (const Group& group : groups_) {
    std::vector<int> before;
    for (const Group& each : groups_) before.push_back(each.noting->rounds());
    send(group);
    ASSERT_TRUE(
        group.noting->wait_for_rounds(before[static_cast<std::size_t>(&group - &groups_[0])] + 1));
    std::byte byte{};
    ASSERT_EQ(group.ranks[0]->mail().try_receive(1, {&byte, 1}).bytes, 1_B);
  }
  EXPECT_EQ(groups_[0].noting->thread(), groups_[1].noting->thread());
  EXPECT_EQ(groups_[0].noting->thread(), groups_[2].noting->thread());
  EXPECT_NE(groups_[0].noting->thread(), std::this_thread::get_id());
}

TEST_F(MailThreadTest, AnInterruptCausesARoundWithoutAMessage) {
  add_all();
  const int before = groups_[1].noting->rounds();
  groups_[1].ranks[0]->mail().interrupt();
  EXPECT_TRUE(groups_[1].noting->wait_for_rounds(before + 1));
}

/// A call may take a message before the thread checks. The next message must wake the thread again.
TEST_F(MailThreadTest, TheNextMessageWakesTheThreadAfterACallTookOne) {
  add_all();
  for (int i = 0; i < 2000; ++i) {
    send(groups_[0]);
    std::byte byte{};
    ASSERT_EQ(groups_[0].ranks[0]->mail().try_receive(1, {&byte, 1}).bytes, 1_B);
  }
  std::this_thread::sleep_for(milliseconds(20));  // until the thread sleeps
  const int before = groups_[0].noting->rounds();
  send(groups_[0]);
  EXPECT_TRUE(groups_[0].noting->wait_for_rounds(before + 1));
}

TEST_F(MailThreadTest, ARemovedMemberHasNoMoreRounds) {
  Group& group = groups_[0];
  std::atomic<bool> inside = false;
  std::atomic<bool> overlapped = false;
  std::atomic<bool> removed = false;
  group.noting->body = [&] {
    inside = true;
    std::this_thread::sleep_for(milliseconds(20));
    if (removed) overlapped = true;
  };
  add_all();
  inside = false;
  group.ranks[0]->mail().interrupt();
  while (!inside) std::this_thread::yield();
  mail_thread_->remove(*group.noting);
  removed = true;
  const int before = group.noting->rounds();
  group.ranks[0]->mail().interrupt();
  const int others = groups_[1].noting->rounds();
  groups_[1].ranks[0]->mail().interrupt();
  ASSERT_TRUE(groups_[1].noting->wait_for_rounds(others + 1));
  EXPECT_EQ(group.noting->rounds(), before);
  EXPECT_FALSE(overlapped);
}

TEST(AlarmTest, TheEndOfAProcessWakesOnceAndStaysKnown) {
  Alarm alarm;
  const IdleChild child;
  const auto process = std::make_shared<PeerProcess>(
      Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0))), child.pid());
  alarm.watch(process);
  EXPECT_TRUE(alarm.wait(test_deadline()));  // because there is another process to watch
  EXPECT_FALSE(alarm.wait(Deadline::after(milliseconds(1))));
  EXPECT_FALSE(process->is_known_to_have_ended());
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_TRUE(alarm.wait(test_deadline()));
  EXPECT_TRUE(process->is_known_to_have_ended());
  EXPECT_FALSE(alarm.wait(Deadline::after(milliseconds(1))));
}

/// Another thread may notice the end first. A sleeping thread must still be woken.
TEST(AlarmTest, AnEndThatIsAlreadyKnownStillWakes) {
  Alarm alarm;
  const IdleChild child;
  const auto process = std::make_shared<PeerProcess>(
      Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid(), 0))), child.pid());
  alarm.watch(process);
  EXPECT_TRUE(alarm.wait(test_deadline()));
  child.signal_and_wait(SIGKILL, WEXITED);
  EXPECT_TRUE(process->has_ended());
  EXPECT_TRUE(alarm.wait(test_deadline()));
}

}  // namespace
}  // namespace peal::transport
