#include "peal/transport/shm/ring_channel.h"

#include <gtest/gtest.h>

#include "peal/system/mapping.h"

namespace peal::transport {
namespace {

/// Two ends of a pair of rings, in one thread.
class RingChannelTest : public ::testing::Test {
 protected:
  static constexpr Bytes kCapacity = 64_KiB;

  RingMemory ring(const Mapping& mapping, Rank peer) {
    std::byte* const begin = mapping.bytes().data();
    return {reinterpret_cast<RingHeader*>(begin), begin + sizeof(RingHeader), kCapacity, peer};
  }

  Mapping there_ = Mapping::anonymous(kCapacity + Bytes(sizeof(RingHeader)));
  Mapping back_ = Mapping::anonymous(kCapacity + Bytes(sizeof(RingHeader)));
  BellState bell_of_0_{};
  BellState bell_of_1_{};
  std::shared_ptr<Doorbell> end_0_ =
      std::make_shared<Doorbell>(bell_of_0_, std::make_shared<Event>());
  std::shared_ptr<Doorbell> end_1_ =
      std::make_shared<Doorbell>(bell_of_1_, std::make_shared<Event>());
  RingChannel channel_0_{end_0_, {{ring(there_, 1), ring(back_, 1), end_1_}}};
  RingChannel channel_1_{end_1_, {{ring(back_, 0), ring(there_, 0), end_0_}}};
};

/// A wake-up is two system calls and a change of processes.
TEST_F(RingChannelTest, ASleepingWriterIsWokenOnceThereIsRoomAndNotByEachRead) {
  const std::vector<std::byte> much(static_cast<std::size_t>(kCapacity.value));
  const ConstPiece piece(much);
  ASSERT_EQ(channel_0_.try_send(1, {&piece, 1}).bytes, kCapacity);
  const Interest room{1, Readiness::kWritable};
  std::vector<std::byte> message(36);
  std::vector<pollfd> entries;
  ASSERT_TRUE(channel_0_.prepare({&room, 1}, entries)) << "the ring is full";
  int reads = 0;
  for (bool woken = false; !woken; ++reads) {
    ASSERT_EQ(channel_1_.try_receive(0, message).bytes, 36_B);
    woken = ::poll(entries.data(), 1, 0) > 0;
  }
  channel_0_.finish(entries);
  EXPECT_GT(channel_0_.try_send(1, {&piece, 1}).bytes, 0_B);
  EXPECT_GT(reads, 100);
}

}  // namespace
}  // namespace peal::transport
