#include "peal/launch/agents/agent_link.h"

#include <gtest/gtest.h>

#include "peal/launch/agents/agent_host.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two ends that are connected by two pipes.
struct Pair {
  explicit Pair(TimePoint now = Clock::now())
      : a(std::move(there.reader), std::move(back.writer), now),
        b(std::move(back.reader), std::move(there.writer), now) {}
  Pipe there = make_pipe();
  Pipe back = make_pipe();
  AgentLink a;
  AgentLink b;
};

TEST(AgentLinkTest, FramesArriveInOrderWithoutHeartbeats) {
  Pair pair;
  const TimePoint now = Clock::now();
  pair.a.send(FrameKind::kEnding, "one");
  pair.a.beat(now + milliseconds(500));
  pair.a.send(FrameKind::kEnding, "two");
  pair.b.read_some(now);
  EXPECT_EQ(pair.b.try_next()->payload, "one");
  EXPECT_EQ(pair.b.try_next()->payload, "two");
  EXPECT_FALSE(pair.b.try_next());
}

TEST(AgentLinkTest, MoreThanThePipeHoldsIsSentLater) {
  Pair pair;
  const std::string large(3 << 20, 'x');
  pair.a.send(FrameKind::kRecord, large);
  EXPECT_TRUE(pair.a.is_full());
  std::optional<Frame> frame;
  for (int i = 0; i < 1000 && !frame; ++i) {
    pair.b.read_some(Clock::now());
    pair.a.write_some();
    frame = pair.b.try_next();
  }
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload, large);
  EXPECT_FALSE(pair.a.is_full());
  EXPECT_FALSE(pair.a.wants_to_write());
}

TEST(AgentLinkTest, ASilentPeerIsNoticedAndAHeartbeatEndsTheSilence) {
  const TimePoint start = Clock::now();
  Pair pair(start);
  for (int i = 1; i <= 4; ++i) pair.b.beat(start + i * milliseconds(500));
  EXPECT_EQ(pair.b.silence(start + seconds(2)), seconds(2));
  pair.a.beat(start + milliseconds(2100));
  pair.b.read_some(start + seconds(2));
  EXPECT_EQ(pair.b.silence(start + seconds(2)), seconds(0));
}

TEST(AgentLinkTest, TimeInWhichThisProcessDidNotRunDoesNotCountAsSilence) {
  const TimePoint start = Clock::now();
  Pair pair(start);
  pair.b.beat(start + milliseconds(500));
  pair.b.beat(start + seconds(60));
  EXPECT_EQ(pair.b.silence(start + seconds(60)), milliseconds(500));
}

TEST(AgentLinkTest, AfterAPauseOfThisProcessASilentPeerIsNoticedAsFastAsBefore) {
  const TimePoint start = Clock::now();
  Pair pair(start);
  pair.a.send(FrameKind::kEnding, "before the pause");
  const TimePoint later = start + seconds(60);
  pair.b.read_some(later);
  pair.b.beat(later);
  EXPECT_EQ(pair.b.silence(later + seconds(2)), seconds(2));
}

/// The peer is silent for this time, and then sends a frame. This side calls `beat` meanwhile.
void stay_silent(Pair& pair, TimePoint& now, milliseconds time) {
  for (; time > milliseconds(0); time -= milliseconds(100)) pair.b.beat(now += milliseconds(100));
  pair.a.send(FrameKind::kEnding);
  pair.b.read_some(now);
}

TEST(AgentLinkTest, APeerThatIsBusyMayBeSilentForFourTimesAsLongAsLately) {
  TimePoint now = Clock::now();
  Pair pair(now);
  stay_silent(pair, now, milliseconds(500));
  EXPECT_EQ(pair.b.patience(seconds(2)), seconds(2));
  stay_silent(pair, now, milliseconds(900));
  EXPECT_EQ(pair.b.patience(seconds(2)), milliseconds(3600));
  stay_silent(pair, now, milliseconds(400));
  EXPECT_EQ(pair.b.patience(seconds(2)), milliseconds(3600));
  stay_silent(pair, now, seconds(3));
  EXPECT_EQ(pair.b.patience(seconds(2)), seconds(10));  // the most
}

TEST(AgentLinkTest, TheLimitIsStrictAgainWhenThePeerHasAnsweredInTimeForTenSeconds) {
  TimePoint now = Clock::now();
  Pair pair(now);
  stay_silent(pair, now, milliseconds(1600));
  for (int i = 0; i < 26; ++i) stay_silent(pair, now, milliseconds(400));
  EXPECT_EQ(pair.b.patience(seconds(2)), seconds(2));
}

TEST(AgentLinkTest, TimeInWhichThisProcessDidNotRunOrReadDoesNotMakeItPatient) {
  TimePoint now = Clock::now();
  Pair pair(now);
  now += seconds(60);
  pair.a.send(FrameKind::kEnding);
  pair.b.read_some(now);
  pair.b.beat(now);
  EXPECT_EQ(pair.b.patience(seconds(2)), seconds(2));
  stay_silent(pair, now, milliseconds(1600));
  pair.b.hear(now);
  EXPECT_EQ(pair.b.patience(seconds(2)), seconds(2));
}

TEST(AgentLinkTest, TheEndOfThePeerClosesTheLinkAfterItsLastFrame) {
  Pair pair;
  pair.a.send(FrameKind::kEnding, "last");
  pair.a.close();
  pair.b.read_some(Clock::now());
  EXPECT_FALSE(pair.b.is_closed());
  EXPECT_EQ(pair.b.try_next()->payload, "last");
  pair.b.read_some(Clock::now());
  EXPECT_TRUE(pair.b.is_closed());
  pair.b.send(FrameKind::kEnding, "not sent");
}

TEST(SilenceLimitTest, AHostWithSeveralRanksOnEachCpuHasMoreTime) {
  EXPECT_EQ(silence_limit(seconds(2), 0, 4), seconds(2));
  EXPECT_EQ(silence_limit(seconds(2), 4, 4), seconds(2));
  EXPECT_EQ(silence_limit(seconds(2), 12, 4), seconds(6));
  EXPECT_EQ(silence_limit(seconds(2), 64, 2), seconds(10));
  EXPECT_EQ(silence_limit(seconds(2), 1, 0), seconds(2));  // the CPUs are not known
}

}  // namespace
}  // namespace peal::launch::agents
