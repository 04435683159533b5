// What a line's beats and acknowledgements say of the rank behind it.
#include "peal/transport/pulse.h"

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using State = Presence::State;

constexpr PulseLimits kDefaultLimits;
constexpr TimePoint kFirstLook{};

constexpr Pulse::Look kAllIsWell{.heard = true, .answered = true};
constexpr Pulse::Look kOnlyItsSystem{.heard = false, .answered = true};
constexpr Pulse::Look kNothing{};

/// A pulse that is looked at every 100 ms.
class Looker {
 public:
  void look(const Pulse::Look& look, milliseconds duration) {
    for (milliseconds passed{0}; passed < duration; passed += kDefaultLimits.every) {
      now_ += kDefaultLimits.every;
      pulse_.look(look, now_);
    }
  }
  /// No look for so long: this process was stopped itself.
  void sleep(milliseconds duration) { now_ += duration; }

  const Pulse& pulse() const { return pulse_; }

 private:
  TimePoint now_ = kFirstLook;
  Pulse pulse_{kDefaultLimits, kFirstLook};
};

TEST(PulseTest, APeerThatBeatsRuns) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(10'000));
  EXPECT_EQ(looker.pulse().presence().state, State::kRunning);
}

TEST(PulseTest, APeerThatIsStoppedIsSilentAndNeverLost) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.look(kOnlyItsSystem, milliseconds(3'600'000));
  EXPECT_FALSE(looker.pulse().is_lost());
  EXPECT_EQ(looker.pulse().presence(),
            (Presence{.state = State::kSilent, .since = milliseconds(3'600'000)}));
}

TEST(PulseTest, AHostThatAnswersNothingIsLostAtTheLimitAndNotBefore) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.look(kNothing, milliseconds(700));
  EXPECT_FALSE(looker.pulse().is_lost());
  EXPECT_EQ(looker.pulse().presence().state, State::kUnreachable);
  looker.look(kNothing, milliseconds(100));
  EXPECT_TRUE(looker.pulse().is_lost());
}

TEST(PulseTest, ALineThatComesBackInTimeIsAsGoodAsNew) {
  Looker looker;
  for (int i = 0; i < 10; ++i) {
    looker.look(kNothing, milliseconds(600));
    looker.look(kAllIsWell, milliseconds(100));
    ASSERT_FALSE(looker.pulse().is_lost());
    ASSERT_EQ(looker.pulse().presence().state, State::kRunning);
  }
}

TEST(PulseTest, APeersBeatsAloneAreProofEnough) {
  Looker looker;
  looker.look({.heard = true, .answered = false}, milliseconds(10'000));
  EXPECT_FALSE(looker.pulse().is_lost());
}

TEST(PulseTest, TimeInWhichThisProcessDidNotLookIsNotHeldAgainstThePeer) {
  Looker looker;
  looker.look(kAllIsWell, milliseconds(1000));
  looker.sleep(milliseconds(60'000));
  looker.look(kNothing, milliseconds(100));  // what came meanwhile was lost on the way, say
  EXPECT_FALSE(looker.pulse().is_lost());
}

}  // namespace
}  // namespace peal::transport
