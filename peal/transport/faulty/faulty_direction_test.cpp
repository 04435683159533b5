#include "peal/transport/faulty/faulty_direction.h"

#include <string>

#include <gtest/gtest.h>

#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using testing::bytes_of;
using DirectionState = FaultyDirection::State;

/// Any moment; the direction reads no clock.
constexpr TimePoint kBegin{std::chrono::hours(1)};

/// Takes all that is ready.
std::string take(FaultyDirection& direction, TimePoint now) {
  std::string text;
  for (auto bytes = direction.ready(now); !bytes.empty(); bytes = direction.ready(now)) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    direction.take(Bytes(static_cast<std::int64_t>(bytes.size())), now);
  }
  return text;
}

TEST(FaultyDirectionTest, BytesAreReadyAtOnceWithoutFaults) {
  FaultyDirection direction;
  EXPECT_EQ(take(direction, kBegin), "");
  EXPECT_EQ(direction.ready_at(), std::nullopt);
  direction.arrive(bytes_of("hel"), kBegin);
  direction.arrive(bytes_of("lo"), kBegin);
  EXPECT_EQ(direction.held(), 5_B);
  EXPECT_EQ(take(direction, kBegin), "hello");
  EXPECT_EQ(direction.state(), DirectionState::kOpen);
  direction.end();
  EXPECT_EQ(direction.state(), DirectionState::kEnded);
}

TEST(FaultyDirectionTest, TheEndComesAfterAllBytes) {
  FaultyDirection direction({.delay = milliseconds(20)});
  direction.arrive(bytes_of("x"), kBegin);
  direction.end();
  EXPECT_EQ(direction.state(), DirectionState::kOpen);
  EXPECT_EQ(take(direction, kBegin + milliseconds(20)), "x");
  EXPECT_EQ(direction.state(), DirectionState::kEnded);
}

TEST(FaultyDirectionTest, EachArrivalIsDelayedByTheSameTime) {
  FaultyDirection direction({.delay = milliseconds(20)});
  direction.arrive(bytes_of("a"), kBegin);
  direction.arrive(bytes_of("b"), kBegin + milliseconds(5));
  EXPECT_EQ(direction.ready_at(), kBegin + milliseconds(20));
  EXPECT_EQ(take(direction, kBegin + milliseconds(19)), "");
  EXPECT_EQ(take(direction, kBegin + milliseconds(20)), "a");
  EXPECT_EQ(direction.ready_at(), kBegin + milliseconds(25));
  EXPECT_EQ(take(direction, kBegin + milliseconds(25)), "b");
}

TEST(FaultyDirectionTest, ASlowLineCarriesTheGivenBytesPerSecond) {
  FaultyDirection direction({.per_second = Bytes(1000)});
  direction.arrive(bytes_of(std::string(100, 'x')), kBegin);
  std::string text;
  TimePoint now = kBegin;
  while (direction.held() > 0_B) {
    now = std::max(now, *direction.ready_at());
    text += take(direction, now);
  }
  EXPECT_EQ(text, std::string(100, 'x'));
  EXPECT_EQ(now - kBegin, milliseconds(95));  // the last piece takes 5 ms more
  direction.arrive(bytes_of("y"), now);
  EXPECT_EQ(*direction.ready_at() - kBegin, milliseconds(100));
}

TEST(FaultyDirectionTest, ALineOfOneBytePerSecondStillMakesProgress) {
  FaultyDirection direction({.per_second = 1_B});
  direction.arrive(bytes_of("ab"), kBegin);
  EXPECT_EQ(take(direction, kBegin), "a");
  EXPECT_EQ(take(direction, kBegin + milliseconds(999)), "");
  EXPECT_EQ(take(direction, kBegin + milliseconds(1000)), "b");
}

TEST(FaultyDirectionTest, DroppedBytesVanishWithoutNotice) {
  FaultyDirection direction({.drop_after = 3_B});
  direction.arrive(bytes_of("hello"), kBegin);
  EXPECT_EQ(take(direction, kBegin), "hel");
  direction.arrive(bytes_of("again"), kBegin);
  direction.end();
  EXPECT_EQ(take(direction, kBegin), "");
  EXPECT_EQ(direction.held(), 0_B);
  EXPECT_EQ(direction.state(), DirectionState::kOpen);
}

TEST(FaultyDirectionTest, ACutComesOnceTheBytesBeforeItAreTaken) {
  FaultyDirection direction({.cut_after = 3_B});
  direction.arrive(bytes_of("hello"), kBegin);
  EXPECT_EQ(direction.state(), DirectionState::kOpen);
  EXPECT_EQ(take(direction, kBegin), "hel");
  EXPECT_EQ(direction.state(), DirectionState::kCut);
  EXPECT_EQ(FaultyDirection({.cut_after = 0_B}).state(), DirectionState::kCut);
}

TEST(FaultyDirectionTest, OnlyTheNamedBytesAreChanged) {
  FaultyDirection direction({.corrupt = {1_B, 7_B}});
  direction.arrive(bytes_of("abcd"), kBegin);
  direction.arrive(bytes_of("efgh"), kBegin);
  std::string expected = "abcdefgh";
  for (const std::size_t at : {1, 7}) expected[at] = static_cast<char>(expected[at] ^ 0xff);
  EXPECT_EQ(take(direction, kBegin), expected);
}

TEST(FaultyDirectionTest, AFullLineHasNoRoom) {
  FaultyDirection direction({.delay = milliseconds(1)});
  const Bytes room = direction.room();
  EXPECT_GT(room, 0_B);
  direction.arrive(std::vector<std::byte>(static_cast<std::size_t>(room.value)), kBegin);
  EXPECT_EQ(direction.room(), 0_B);
  take(direction, kBegin + milliseconds(1));
  EXPECT_EQ(direction.room(), room);
}

TEST(FaultyDirectionTest, AFaultConcernsTheDirectionsAndChannelsThatItNames) {
  const auto faults = [](const char* text, Rank from, Rank to, ChannelKind channel) {
    return faults_of(parse_faults(text).links, from, to, channel);
  };
  const DirectionFaults cut{.cut_after = 4_B};
  for (const auto channel : {ChannelKind::kData, ChannelKind::kMail}) {
    EXPECT_EQ(faults("link 0-1 cut after 4", 0, 1, channel), cut);
    EXPECT_EQ(faults("link 0-1 cut after 4", 1, 0, channel), cut);
    EXPECT_EQ(faults("link 0>1 cut after 4", 0, 1, channel), cut);
    EXPECT_EQ(faults("link 0>1 cut after 4", 1, 0, channel), DirectionFaults{});
    EXPECT_EQ(faults("link 0-1 cut after 4", 0, 2, channel), DirectionFaults{});
  }
  EXPECT_EQ(faults("link 0-1 mail cut after 4", 0, 1, ChannelKind::kMail), cut);
  EXPECT_EQ(faults("link 0-1 mail cut after 4", 0, 1, ChannelKind::kData), DirectionFaults{});
}

TEST(FaultyDirectionTest, SeveralFaultsOfOneLineAreCombined) {
  const auto plan = parse_faults(
      "link 0-1 delay 20 ms; link 0>1 delay 5 ms; link 0-1 slow 2K/s; link 0-1 slow 1K/s\n"
      "link 0-1 drop after 9; link 0-1 drop after 8; link 0-1 cut after 7; link 0-1 cut after 9\n"
      "link 0-1 corrupt after 1; link 0-1 corrupt after 2");
  EXPECT_EQ(faults_of(plan.links, 0, 1, ChannelKind::kData),
            (DirectionFaults{.delay = milliseconds(25),
                             .per_second = 1_KiB,
                             .drop_after = 8_B,
                             .cut_after = 7_B,
                             .corrupt = {1_B, 2_B}}));
}

}  // namespace
}  // namespace peal::transport
