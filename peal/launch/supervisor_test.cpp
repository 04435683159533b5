#include "peal/launch/supervisor.h"

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// A guard without processes. Keeps what the supervisor orders.
class IdleGuard final : public Guard {
 public:
  explicit IdleGuard(std::vector<std::string>& orders) : orders_(orders) {}

  int events() const override { return silent_.reader.get(); }
  std::optional<GuardEvent> try_next() override { return std::nullopt; }
  bool has_ended() const override { return false; }
  int orders() const override { return -1; }
  void pass_on(int, SignalOrigin) override { orders_.emplace_back("pass on"); }
  void stop(int, SignalOrigin) override { orders_.emplace_back("stop"); }
  void ask_to_stop(int, SignalOrigin) override { orders_.emplace_back("ask to stop"); }
  void warn() override { orders_.emplace_back("warn"); }
  void kill() override { orders_.emplace_back("kill"); }
  void start(const RankCommand&, const StandardFiles&) override { orders_.emplace_back("start"); }
  void signal(Rank, int) override { orders_.emplace_back("signal"); }
  std::string why_lost(Rank) const override { return ""; }

 private:
  Pipe silent_ = make_pipe();
  std::vector<std::string>& orders_;
};

class SupervisorTest : public ::testing::Test {
 protected:
  /// Sends the signal to this process, and lets the supervisor read it.
  void send(int signal) {
    ::raise(signal);
    std::vector<pollfd> entries;
    supervisor_.add_to(entries);
    ASSERT_GT(::poll(entries.data(), entries.size(), 60'000), 0);
    supervisor_.handle(entries, [](const GuardEvent&) {});
  }

  std::vector<std::string> orders_;
  SignalReader signals_;
  Supervisor supervisor_{
      signals_, Timeout(60'000), [this] { return std::make_unique<IdleGuard>(orders_); }};
};

TEST_F(SupervisorTest, TheFirstOfTwoLateSignalsIsKept) {
  supervisor_.fail();
  send(SIGTERM);
  send(SIGINT);
  EXPECT_EQ(supervisor_.intervention().late_signal, SIGTERM);
}

TEST_F(SupervisorTest, ASignalEndsARunningJob) {
  send(SIGTERM);
  EXPECT_EQ(supervisor_.stage(), Stage::kStopping);
  EXPECT_EQ(supervisor_.intervention().signal, SIGTERM);
  EXPECT_EQ(supervisor_.intervention().late_signal, 0);
  EXPECT_EQ(orders_, std::vector<std::string>{"ask to stop"});
}

TEST_F(SupervisorTest, ASignalWhileAFailedJobEndsIsNotTheCauseButIsKept) {
  supervisor_.fail();
  send(SIGTERM);
  EXPECT_EQ(supervisor_.stage(), Stage::kStopping);
  EXPECT_EQ(supervisor_.intervention().signal, 0);
  EXPECT_EQ(supervisor_.intervention().late_signal, SIGTERM);
  EXPECT_EQ(orders_, std::vector<std::string>{"stop"});
}

TEST_F(SupervisorTest, ASignalWhileTheSupervisorStopsAFailedJobKillsAtOnce) {
  supervisor_.fail();
  supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  send(SIGINT);
  EXPECT_EQ(supervisor_.intervention().signal, 0);
  EXPECT_EQ(supervisor_.intervention().late_signal, SIGINT);
  EXPECT_EQ(supervisor_.intervention().cut_short, SIGINT);
  EXPECT_EQ(orders_, (std::vector<std::string>{"stop", "kill"}));
}

TEST_F(SupervisorTest, ASecondSignalIsNotALateSignal) {
  send(SIGTERM);
  send(SIGINT);
  EXPECT_EQ(supervisor_.intervention().signal, SIGTERM);
  EXPECT_EQ(supervisor_.intervention().late_signal, 0);
  EXPECT_EQ(supervisor_.intervention().cut_short, SIGINT);
}

TEST_F(SupervisorTest, SignalsForTheProgramDoNotEndTheJob) {
  send(SIGUSR1);
  EXPECT_EQ(supervisor_.stage(), Stage::kRunning);
  EXPECT_EQ(orders_, std::vector<std::string>{"pass on"});
}

}  // namespace
}  // namespace peal::launch
