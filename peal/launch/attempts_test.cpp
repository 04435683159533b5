#include "peal/launch/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::VariantWith;

const TimePoint kStart = TimePoint(seconds(1000));
const AttemptRules kRules{.least_ranks = 4,
                          .most_ranks = 4,
                          .restarts = {.most = 3},
                          .cooldown = {.low = seconds(10), .high = seconds(60)},
                          .host_timeout = seconds(30)};

AttemptState three_hosts() {
  return {.hosts = {{.host = {"a", 2}}, {.host = {"b", 2}}, {.host = {"c", 2}}},
          .waiting_since = kStart};
}

void lose(AttemptState& state, const std::string& host, TimePoint now = kStart) {
  bar_host(state, now, host, "no sign of life for 2 s", kRules, 0.5);
}

TEST(AttemptsTest, TheFirstAttemptTakesTheFirstHostsThatHaveRoom) {
  EXPECT_THAT(next_attempt(kStart, three_hosts(), kRules),
              VariantWith<BeginAttempt>(BeginAttempt{{{"a", 2}, {"b", 2}}, 4}));
}

TEST(AttemptsTest, WithoutHostsAllRanksAreOnThisMachine) {
  EXPECT_THAT(next_attempt(kStart, {}, kRules), VariantWith<BeginAttempt>(BeginAttempt{{}, 4}));
}

TEST(AttemptsTest, ASpareHostReplacesALostHost) {
  AttemptState state = three_hosts();
  lose(state, "a");
  EXPECT_THAT(next_attempt(kStart, state, kRules),
              VariantWith<BeginAttempt>(BeginAttempt{{{"b", 2}, {"c", 2}}, 4}));
}

TEST(AttemptsTest, ALostHostIsUsedAgainAfterItsCooldown) {
  AttemptState state = three_hosts();
  lose(state, "a");
  EXPECT_THAT(next_attempt(kStart + seconds(15), state, kRules),
              VariantWith<BeginAttempt>(BeginAttempt{{{"a", 2}, {"b", 2}}, 4}));
}

TEST(AttemptsTest, WithoutEnoughRoomTheJobWaitsForABarredHostAndThenGivesUp) {
  AttemptState state = three_hosts();
  lose(state, "a");
  lose(state, "c");
  EXPECT_THAT(
      next_attempt(kStart, state, kRules),
      VariantWith<Pause>(
          Pause{kStart + seconds(15),
                "the job waits for hosts: there is room for 2 ranks, and it needs 4: a: no sign of "
                "life for 2 s; c: no sign of life for 2 s"}));
  lose(state, "a", kStart + seconds(20));  // barred for 25 s now, and so until after the timeout
  lose(state, "c", kStart + seconds(20));
  const AttemptDecision last = next_attempt(kStart + seconds(21), state, kRules);
  ASSERT_TRUE(std::holds_alternative<GiveUp>(last));
  EXPECT_THAT(std::get<GiveUp>(last).why,
              HasSubstr("there is room for 2 ranks, and the job needs 4, for 30 s: a: no sign"));
}

TEST(AttemptsTest, AJobThatMayShrinkContinuesOnFewerHosts) {
  AttemptRules rules = kRules;
  rules.least_ranks = 2;
  rules.most_ranks = 6;
  AttemptState state = three_hosts();
  EXPECT_THAT(next_attempt(kStart, state, rules),
              VariantWith<BeginAttempt>(BeginAttempt{{{"a", 2}, {"b", 2}, {"c", 2}}, 6}));
  lose(state, "b");
  EXPECT_THAT(next_attempt(kStart, state, rules),
              VariantWith<BeginAttempt>(BeginAttempt{{{"a", 2}, {"c", 2}}, 4}));
}

TEST(AttemptsTest, ThePauseDoublesUpToTheLongestAndRestartsAreLimited) {
  AttemptRules rules = kRules;
  rules.restarts = {
      .most = 3, .first_pause = milliseconds(400), .longest_pause = milliseconds(1000)};
  AttemptState state = three_hosts();
  for (const int pause : {400, 800, 1000}) {
    ASSERT_TRUE(may_restart(state, rules));
    restart_after_failure(state, kStart, rules);
    EXPECT_THAT(next_attempt(kStart, state, rules),
                VariantWith<Pause>(Pause{kStart + milliseconds(pause)}));
    EXPECT_THAT(next_attempt(kStart + milliseconds(pause), state, rules),
                VariantWith<BeginAttempt>(testing::_));
  }
  EXPECT_FALSE(may_restart(state, rules));
}

}  // namespace
}  // namespace peal::launch
