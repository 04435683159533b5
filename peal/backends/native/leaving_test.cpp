// How long a leaving rank waits.
#include <chrono>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "peal/backends/native/testing/join.h"
#include "peal/base/clock.h"
#include "peal/group/process_group.h"
#include "peal/transport/memory/memory.h"
#include "peal/transport/testing/faulty.h"

namespace peal::native {
namespace {

using std::chrono::seconds;
using transport::ChannelKind;
using transport::StreamFault;

constexpr Timeout kTimeout = std::chrono::minutes(5);

/// Two ranks that share no memory. Rank 0 has the faults.
class Pair {
 public:
  explicit Pair(const transport::Faults& faults) {
    transport::MemoryOptions options;
    options.sharing = transport::MemoryOptions::Sharing::kMessagesOnly;
    transports_ = transport::make_memory_transports(2, options);
    transports_[0] = transport::make_faulty(std::move(transports_[0]), faults);
  }

  ProcessGroupPtr join(Rank rank) {
    return join_pair(rank, std::move(transports_[static_cast<std::size_t>(rank)]), kTimeout);
  }

 private:
  std::vector<std::unique_ptr<transport::Transport>> transports_;
};

TEST(LeavingTest, ALeavingRankDoesNotWaitLongForAcknowledgementsThatNeverCome) {
  Pair pair({.streams = {{.kind = StreamFault::Kind::kUnacknowledged,
                          .peer = 1,
                          .channel = ChannelKind::kMail}}});
  auto other = std::async(std::launch::async, [&] { return pair.join(1); });
  const ProcessGroupPtr group = pair.join(0);
  const ProcessGroupPtr peer = other.get();  // the peer stays and sends nothing
  const TimePoint begin = Clock::now();
  group->destroy();
  EXPECT_LT(Clock::now() - begin, seconds(10));
  peer->destroy();
}

}  // namespace
}  // namespace peal::native
