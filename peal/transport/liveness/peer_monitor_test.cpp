// What a line's beats and acknowledgements say about the rank behind it.
#include "peal/transport/liveness/peer_monitor.h"

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using State = Presence::State;

constexpr HeartbeatLimits kDefaultLimits;
constexpr TimePoint kFirstLook{};

constexpr PeerMonitor::Observation kAllIsWell{.beat_received = true, .answered = true};
constexpr PeerMonitor::Observation kOnlyItsSystem{.beat_received = false, .answered = true};
constexpr PeerMonitor::Observation kNothing{};

/// A monitor that is looked at every 100 ms.
class Looker {
 public:
  void look(const PeerMonitor::Observation& seen, milliseconds duration) {
    for (milliseconds passed{0}; passed < duration; passed += kDefaultLimits.every) {
      now_ += kDefaultLimits.every;
      monitor_.observe(seen, now_);
    }
  }
  /// No look for this long: this process was stopped itself.
  void sleep(milliseconds duration) { now_ += duration; }

  const PeerMonitor& monitor() const { return monitor_; }

 private:
  TimePoint now_ = kFirstLook;
  PeerMonitor monitor_{kDefaultLimits, kFirstLook};
};

TEST(PeerMonitorTest, APeerThatBeatsIsRunning) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(10'000));
  EXPECT_EQ(looker.monitor().presence().state, State::kRunning);
}

TEST(PeerMonitorTest, AStoppedPeerIsSilentAndNeverLost) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.look(kOnlyItsSystem, milliseconds(3'600'000));
  EXPECT_FALSE(looker.monitor().is_lost());
  EXPECT_EQ(looker.monitor().presence(),
            (Presence{.state = State::kSilent, .since = milliseconds(3'600'000)}));
}

TEST(PeerMonitorTest, AHostThatAnswersNothingIsLostAtTheLimitAndNotBefore) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.look(kNothing, milliseconds(700));
  EXPECT_FALSE(looker.monitor().is_lost());
  EXPECT_EQ(looker.monitor().presence().state, State::kUnreachable);
  looker.look(kNothing, milliseconds(100));
  EXPECT_TRUE(looker.monitor().is_lost());
}

TEST(PeerMonitorTest, ALineThatRecoversInTimeIsAsGoodAsNew) {
  Looker looker;
  for (int i = 0; i < 10; ++i) {
    looker.look(kNothing, milliseconds(600));
    looker.look(kAllIsWell, milliseconds(100));
    ASSERT_FALSE(looker.monitor().is_lost());
    ASSERT_EQ(looker.monitor().presence().state, State::kRunning);
  }
}

TEST(PeerMonitorTest, BeatsWithoutAcknowledgementsAreEnough) {
  Looker looker;
  looker.look({.beat_received = true, .answered = false}, milliseconds(10'000));
  EXPECT_FALSE(looker.monitor().is_lost());
}

TEST(PeerMonitorTest, TimeWithoutLooksDoesNotCountAgainstThePeer) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.sleep(milliseconds(60'000));
  // the beats of the meantime were lost on the way, for example
  looker.look(kNothing, milliseconds(100));
  EXPECT_FALSE(looker.monitor().is_lost());
}

}  // namespace
}  // namespace peal::transport
