#include "peal/transport/shm/doorbell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

/// Whether a thread of this process sleeps in write(2).
bool sleeps_in_write(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long number = 0;  // the file has a word instead for a thread that does not sleep
  return file >> number && number == SYS_write;
}

bool is_rung(const Event& event) {
  pollfd entry{event.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

/// An event that is full: a thread that rings it is stopped until the event is hushed.
class FullEvent {
 public:
  FullEvent() : event_(std::make_shared<Event>(Fd(::eventfd(0, EFD_CLOEXEC)))) {
    ::eventfd_write(event_->fd(), UINT64_MAX - 1);
  }
  const std::shared_ptr<Event>& event() const { return event_; }

 private:
  std::shared_ptr<Event> event_;
};

/// A sleeper, a ringer that is stopped just as it rings, and another ringer.
class DoorbellTest : public ::testing::Test {
 protected:
  DoorbellTest() {
    sleeper_.announce_sleep();
    stopped_ = std::thread([this] {
      number_ = static_cast<pid_t>(::syscall(SYS_gettid));
      Doorbell(state_, full_.event()).ring_if_asleep();
    });
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!is_stopped() && !deadline.passed()) ::usleep(1000);
    EXPECT_TRUE(is_stopped());
  }
  ~DoorbellTest() override { let_stopped_one_go_on(); }

  bool is_stopped() const { return number_ != 0 && sleeps_in_write(number_); }
  void let_stopped_one_go_on() {
    if (!stopped_.joinable()) return;
    full_.event()->reset_count();
    stopped_.join();
  }

  BellState state_{};
  std::shared_ptr<Event> event_ = std::make_shared<Event>();
  Doorbell sleeper_{state_, event_};
  Doorbell other_{state_, event_};

 private:
  const FullEvent full_;
  std::atomic<pid_t> number_ = 0;
  std::thread stopped_;
};

TEST_F(DoorbellTest, AStoppedRingerDoesNotHideTheSleeperFromOtherRingers) {
  other_.ring_if_asleep();
  EXPECT_TRUE(is_rung(*event_));
}

TEST_F(DoorbellTest, ARingerThatWasStoppedDoesNotEndALaterSleep) {
  sleeper_.end_sleep();
  sleeper_.announce_sleep();
  let_stopped_one_go_on();
  other_.ring_if_asleep();
  EXPECT_TRUE(is_rung(*event_)) << "the late ringer has marked the new sleep as rung";
}

}  // namespace
}  // namespace peal::transport
