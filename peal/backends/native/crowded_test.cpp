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
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/forwarding.h"

namespace {

/// How long a yield of this thread takes; 0: as long as the system takes.
thread_local std::chrono::milliseconds time_of_a_yield{0};
thread_local int yields = 0;

}  // namespace

/// In place of the system's.
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

/// A thread whose yields take long finds some bytes after each, one small message or two.
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

/// Of a rank that shares its only core.
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

/// Rank 0 does `waits`, which does not end within its timeout though data arrives all the time;
/// rank 1 does `sends`. Returns how often rank 0 has yielded: a slow machine makes it less.
template <class Waits, class Sends>
int yields_until_the_timeout(Waits waits, Sends sends) {
  auto transports = transport::make_memory_transports(
      2, {.sharing = transport::MemoryOptions::Sharing::kMessagesOnly});
  std::promise<void> failed;
  auto other = std::async(std::launch::async, [&] {
    const auto group = join_pair(1, std::move(transports[1]), std::chrono::minutes(5));
    try {
      sends(*group);
    } catch (const Error&) {  // rank 0 has failed before all was sent
    }
    failed.get_future().wait();
  });
  const auto group =
      join_pair(0, std::make_unique<SlowTransport>(std::move(transports[0])), kShortTimeout);
  yields = 0;
  time_of_a_yield = kYield;
  try {
    waits(*group);
    ADD_FAILURE() << "it has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout) << error.what();
  }
  time_of_a_yield = {};
  failed.set_value();
  other.get();
  return yields;
}

/// Twice as many yields as fit into the timeout.
constexpr int kTooMany = 2 * static_cast<int>(kShortTimeout / kYield);

TEST(CrowdedTest, ACollectiveWhoseDataTricklesInEndsAtItsDeadline) {
  std::vector<float> mine(1 << 14);
  std::vector<float> others(1 << 14);
  const int count = yields_until_the_timeout(
      [&](ProcessGroup& group) { group.broadcast(std::span<float>(mine), 1); },
      [&](ProcessGroup& group) { group.broadcast(std::span<float>(others), 1); });
  EXPECT_LT(count, kTooMany);
}

TEST(CrowdedTest, AReceiveEndsAtItsDeadlineWhileOtherMessagesTrickleIn) {
  float mine = 0;
  const float others = 0;
  const int count = yields_until_the_timeout(
      [&](ProcessGroup& group) { group.recv(std::span(&mine, 1), 1, Tag{1}); },
      [&](ProcessGroup& group) {
        for (int i = 0; i < 2000; ++i) group.send(std::span(&others, 1), 0, Tag{2});
      });
  EXPECT_LT(count, kTooMany);
}

}  // namespace
}  // namespace peal::native
