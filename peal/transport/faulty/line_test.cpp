#include "peal/transport/faulty/line.h"

#include <string>

#include <gtest/gtest.h>

#include "peal/transport/testing/testing.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using testing::bytes_of;
using LineState = FaultyLine::State;

/// Any moment; the line reads no clock.
constexpr TimePoint kBegin{std::chrono::hours(1)};

/// Takes all that is ready.
std::string take(FaultyLine& line, TimePoint now) {
  std::string text;
  for (auto bytes = line.ready(now); !bytes.empty(); bytes = line.ready(now)) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    line.take(Bytes(static_cast<std::int64_t>(bytes.size())), now);
  }
  return text;
}

TEST(FaultyLineTest, WithoutFaultsWhatArrivesIsReady) {
  FaultyLine line;
  EXPECT_EQ(take(line, kBegin), "");
  EXPECT_EQ(line.ready_at(), std::nullopt);
  line.arrive(bytes_of("hel"), kBegin);
  line.arrive(bytes_of("lo"), kBegin);
  EXPECT_EQ(line.held(), 5_B);
  EXPECT_EQ(take(line, kBegin), "hello");
  EXPECT_EQ(line.state(), LineState::kOpen);
  line.end();
  EXPECT_EQ(line.state(), LineState::kEnded);
}

TEST(FaultyLineTest, TheEndComesAfterEverythingElse) {
  FaultyLine line({.delay = milliseconds(20)});
  line.arrive(bytes_of("x"), kBegin);
  line.end();
  EXPECT_EQ(line.state(), LineState::kOpen);
  EXPECT_EQ(take(line, kBegin + milliseconds(20)), "x");
  EXPECT_EQ(line.state(), LineState::kEnded);
}

TEST(FaultyLineTest, EachArrivalIsDelayedByTheSameTime) {
  FaultyLine line({.delay = milliseconds(20)});
  line.arrive(bytes_of("a"), kBegin);
  line.arrive(bytes_of("b"), kBegin + milliseconds(5));
  EXPECT_EQ(line.ready_at(), kBegin + milliseconds(20));
  EXPECT_EQ(take(line, kBegin + milliseconds(19)), "");
  EXPECT_EQ(take(line, kBegin + milliseconds(20)), "a");
  EXPECT_EQ(line.ready_at(), kBegin + milliseconds(25));
  EXPECT_EQ(take(line, kBegin + milliseconds(25)), "b");
}

TEST(FaultyLineTest, ASlowLineCarriesSoMuchInASecond) {
  FaultyLine line({.per_second = Bytes(1000)});
  line.arrive(bytes_of(std::string(100, 'x')), kBegin);
  std::string text;
  TimePoint now = kBegin;
  while (line.held() > 0_B) {
    now = std::max(now, *line.ready_at());
    text += take(line, now);
  }
  EXPECT_EQ(text, std::string(100, 'x'));
  EXPECT_EQ(now - kBegin, milliseconds(95));  // and the last piece lasts 5 more
  line.arrive(bytes_of("y"), now);
  EXPECT_EQ(*line.ready_at() - kBegin, milliseconds(100));
}

TEST(FaultyLineTest, ALineThatCarriesHardlyAnythingGetsOn) {
  FaultyLine line({.per_second = 1_B});
  line.arrive(bytes_of("ab"), kBegin);
  EXPECT_EQ(take(line, kBegin), "a");
  EXPECT_EQ(take(line, kBegin + milliseconds(999)), "");
  EXPECT_EQ(take(line, kBegin + milliseconds(1000)), "b");
}

TEST(FaultyLineTest, WhatIsDroppedIsGoneAndNobodyIsTold) {
  FaultyLine line({.drop_after = 3_B});
  line.arrive(bytes_of("hello"), kBegin);
  EXPECT_EQ(take(line, kBegin), "hel");
  line.arrive(bytes_of("again"), kBegin);
  line.end();
  EXPECT_EQ(take(line, kBegin), "");
  EXPECT_EQ(line.held(), 0_B);
  EXPECT_EQ(line.state(), LineState::kOpen);
}

TEST(FaultyLineTest, ACutComesWhenWhatWasBeforeItIsTaken) {
  FaultyLine line({.cut_after = 3_B});
  line.arrive(bytes_of("hello"), kBegin);
  EXPECT_EQ(line.state(), LineState::kOpen);
  EXPECT_EQ(take(line, kBegin), "hel");
  EXPECT_EQ(line.state(), LineState::kCut);
  EXPECT_EQ(FaultyLine({.cut_after = 0_B}).state(), LineState::kCut);
}

TEST(FaultyLineTest, ExactlyTheNamedBytesAreOthers) {
  FaultyLine line({.corrupt = {1_B, 7_B}});
  line.arrive(bytes_of("abcd"), kBegin);
  line.arrive(bytes_of("efgh"), kBegin);
  std::string expected = "abcdefgh";
  for (const std::size_t at : {1, 7}) expected[at] = static_cast<char>(expected[at] ^ 0xff);
  EXPECT_EQ(take(line, kBegin), expected);
}

TEST(FaultyLineTest, ALineThatIsFullTakesNoMore) {
  FaultyLine line({.delay = milliseconds(1)});
  const Bytes room = line.room();
  EXPECT_GT(room, 0_B);
  line.arrive(std::vector<std::byte>(static_cast<std::size_t>(room.value)), kBegin);
  EXPECT_EQ(line.room(), 0_B);
  take(line, kBegin + milliseconds(1));
  EXPECT_EQ(line.room(), room);
}

TEST(FaultyLineTest, AFaultConcernsTheDirectionsAndChannelsThatItNames) {
  const auto faults = [](const char* text, Rank from, Rank to, ChannelKind channel) {
    return faults_of(parse_faults(text).links, from, to, channel);
  };
  const LineFaults cut{.cut_after = 4_B};
  for (const auto channel : {ChannelKind::kData, ChannelKind::kMail}) {
    EXPECT_EQ(faults("link 0-1 cut after 4", 0, 1, channel), cut);
    EXPECT_EQ(faults("link 0-1 cut after 4", 1, 0, channel), cut);
    EXPECT_EQ(faults("link 0>1 cut after 4", 0, 1, channel), cut);
    EXPECT_EQ(faults("link 0>1 cut after 4", 1, 0, channel), LineFaults{});
    EXPECT_EQ(faults("link 0-1 cut after 4", 0, 2, channel), LineFaults{});
  }
  EXPECT_EQ(faults("link 0-1 mail cut after 4", 0, 1, ChannelKind::kMail), cut);
  EXPECT_EQ(faults("link 0-1 mail cut after 4", 0, 1, ChannelKind::kData), LineFaults{});
}

TEST(FaultyLineTest, SeveralFaultsOfOneLineComeTogether) {
  const auto plan = parse_faults(
      "link 0-1 delay 20 ms; link 0>1 delay 5 ms; link 0-1 slow 2K/s; link 0-1 slow 1K/s\n"
      "link 0-1 drop after 9; link 0-1 drop after 8; link 0-1 cut after 7; link 0-1 cut after 9\n"
      "link 0-1 corrupt after 1; link 0-1 corrupt after 2");
  EXPECT_EQ(faults_of(plan.links, 0, 1, ChannelKind::kData),
            (LineFaults{.delay = milliseconds(25),
                        .per_second = 1_KiB,
                        .drop_after = 8_B,
                        .cut_after = 7_B,
                        .corrupt = {1_B, 2_B}}));
}

}  // namespace
}  // namespace peal::transport
