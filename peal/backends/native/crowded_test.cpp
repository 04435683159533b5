// Deadlines of operations on a machine where many processes share the cores, so that each yield
// takes milliseconds, while the peers' data arrives bit by bit.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "peal/backends/native/testing/join.h"
#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/forwarding.h"

namespace {

/// How long each yield of this thread takes; 0 means the system's time.
thread_local std::chrono::milliseconds time_of_a_yield{0};
thread_local int yields = 0;

}  // namespace

/// Replaces the system's sched_yield.
extern "C" int sched_yield() noexcept {
  ++yields;
  if (time_of_a_yield.count() == 0) return static_cast<int>(::syscall(SYS_sched_yield));
  std::this_thread::sleep_for(time_of_a_yield);
  return 0;
}

namespace peal::native {
namespace {

using std::chrono::milliseconds;
using transport::Transport;

constexpr milliseconds kYield{5};
constexpr Timeout kShortTimeout{200};

/// On a thread with slow yields, each yield is followed by at most 64 bytes: one or two small
/// messages.
class SlowChannel final : public transport::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;

  transport::Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    if (time_of_a_yield.count() == 0) return ForwardingChannel::try_receive(peer, into);
    if (std::exchange(yields_seen_, yields) == yields) return {};
    return ForwardingChannel::try_receive(peer, into.first(std::min(kBytesEach, into.size())));
  }

 private:
  static constexpr std::size_t kBytesEach = 64;
  int yields_seen_ = 0;
};

/// The transport of a rank that shares its only core.
class SlowTransport final : public transport::ForwardingTransport {
 public:
  explicit SlowTransport(std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)),
        data_(this->inner().data()),
        mail_(this->inner().mail()) {}

  SlowChannel& data() override { return data_; }
  SlowChannel& mail() override { return mail_; }
  std::optional<transport::SharedMail> shared_mail() override { return std::nullopt; }
  int cpus_on_host() const override { return 1; }

 private:
  SlowChannel data_;
  SlowChannel mail_;
};

/// Rank 0 calls waits(group) while rank 1 repeats sends(group), and must fail with `kind`. Returns
/// how often rank 0 has yielded. On a slow machine the count is lower.
template <class Waits, class Sends>
int yields_until(ErrorKind kind, Waits waits, Sends sends, Interrupt interrupt = {}) {
  constexpr Timeout kLong = std::chrono::minutes(10);
  auto transports = transport::make_memory_transports(
      2, {.sharing = transport::MemoryOptions::Sharing::kMessagesOnly});
  const auto other = std::async(std::launch::async, [&] {
    const auto group = join_pair(1, std::move(transports[1]), kLong);
    try {
      group->send(std::span<const float>(), 0);
      while (true) sends(*group);
    } catch (const Error&) {  // rank 0 has failed
    }
  });
  Options options;
  options.interrupt = std::move(interrupt);
  const auto group = join_pair(
      0, std::make_unique<SlowTransport>(std::move(transports[0])), kLong, std::move(options));
  group->recv(std::span<float>(), 1);
  yields = 0;
  time_of_a_yield = kYield;
  try {
    waits(*group);
    ADD_FAILURE() << "the operation ended without an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
  }
  time_of_a_yield = {};
  return yields;
}

/// Twice as many yields as fit into the time.
constexpr int too_many(Duration time) { return 2 * static_cast<int>(time / kYield); }

void broadcast(ProcessGroup& group, Timeout timeout = kGroupTimeout) {
  std::vector<float> data(1 << 14);
  group.broadcast(std::span(data), 1, {.timeout = timeout});
}

void receive(ProcessGroup& group, Timeout timeout = kGroupTimeout) {
  float value = 0;
  group.recv(std::span(&value, 1), 1, {.tag = Tag{1}, .timeout = timeout});
}

void send_something_else(ProcessGroup& group) {
  const float value = 0;
  group.send(std::span(&value, 1), 0, {.tag = Tag{2}});
}

TEST(CrowdedTest, ACollectiveWhoseDataTricklesInEndsAtItsDeadline) {
  EXPECT_LT(yields_until(
                ErrorKind::kTimeout,
                [](ProcessGroup& group) { broadcast(group, kShortTimeout); },
                [](ProcessGroup& group) { broadcast(group); }),
            too_many(kShortTimeout));
}

TEST(CrowdedTest, AReceiveEndsAtItsDeadlineWhileOtherMessagesTrickleIn) {
  EXPECT_LT(yields_until(
                ErrorKind::kTimeout,
                [](ProcessGroup& group) { receive(group, kShortTimeout); },
                send_something_else),
            too_many(kShortTimeout));
}

/// An interrupt that throws when it is first called while yields are slow.
void stop_the_wait() {
  if (time_of_a_yield.count() > 0) throw Error(ErrorKind::kUsage, "interrupted");
}

TEST(CrowdedTest, ACollectiveWhoseDataTricklesInIsInterrupted) {
  const auto call = [](ProcessGroup& group) { broadcast(group); };
  EXPECT_LT(yields_until(ErrorKind::kUsage, call, call, stop_the_wait),
            too_many(2 * kInterruptEvery));
}

TEST(CrowdedTest, AReceiveIsInterruptedWhileOtherMessagesTrickleIn) {
  EXPECT_LT(yields_until(
                ErrorKind::kUsage,
                [](ProcessGroup& group) { receive(group); },
                send_something_else,
                stop_the_wait),
            too_many(2 * kInterruptEvery));
}

}  // namespace
}  // namespace peal::native
