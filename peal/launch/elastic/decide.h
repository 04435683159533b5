// What the driver of an elastic job does next: a pure function of the time, the state and the
// options. Called by the driver's loop (driver.cpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/elastic/state.h"

namespace peal::launch::elastic {

/// Connect with a host that has slots for more workers.
struct ConnectHost {
  std::string host;
};

/// End the connection with a host that is no longer a host of the job.
struct LeaveHost {
  std::string host;
};

/// Start a worker on a free slot.
struct StartWorker {
  std::string host;
  int slot = 0;
};

/// Begin the next round with these workers, which all wait for it. In the order of their ranks.
struct BeginRound {
  std::vector<Member> members;
};

/// Let the workers of the round know that the hosts have changed. They will ask for a new round.
struct TellChanges {
  HostChanges changes = HostChanges::kNone;  // since the round began
};

/// Answer a worker that asks for a round: it is removed, and should end.
struct RemoveWorker {
  int worker = 0;
};

/// End a worker by a signal. Its end does not count, and its slot is free once it has ended.
struct StopWorker {
  int worker = 0;
};

/// Nothing to do until something happens, or time passes.
struct Wait {};

struct EndWell {};

struct EndBadly {
  std::string why;  // the words that the users of Horovod know, where they exist
};

struct Decision {
  std::variant<Wait,
               ConnectHost,
               LeaveHost,
               StartWorker,
               BeginRound,
               TellChanges,
               RemoveWorker,
               StopWorker,
               EndWell,
               EndBadly>
      action;
  std::string reason;  // for the report and for tests
};

/// How long a removed worker has to end by itself.
inline constexpr Duration kToLeave = std::chrono::seconds(30);
/// How long workers that are ready to join wait for others that were started, so that one reset
/// takes them all.
inline constexpr Duration kToJoin = std::chrono::seconds(30);

/// How long the first round waits for hosts that have not answered yet.
inline constexpr Duration kToConnect = std::chrono::seconds(10);

/// The job fails after this many rounds in a row in which a worker fails by itself before a
/// commit. Then the program has a bug that a new round does not fix.
inline constexpr int kMostFruitlessRounds = 3;

/// Call it again after each action but Wait, and after each event.
///   The driver connects with hosts that are found and not barred, the oldest host first, until
///     they have room for max_ranks. So the last hosts are spare: they replace hosts that are lost.
///   Workers start on all free slots of connected hosts that are found and not barred, the oldest
///     host first, up to max_ranks, and on no more than max_hosts hosts.
///   The first round begins when all started workers ask for it, at least min_ranks. It also waits
///     for hosts that are about to answer.
///   A later round begins as soon as every worker of the current round asks for it or has ended,
///     with at least min_ranks workers that ask, one of them with the state of the training.
///   Workers of new slots wait until the workers of the round ask. The workers of the round are
///     notified when the new workers are ready.
///   After the first worker that ends well, or announces its end, no workers start. Rounds for
///     workers that still ask need no min_ranks.
///   The job ends well when all workers have ended, and at least one of them ended well.
///   Exceptions, in which the job ends badly:
///     - no worker with the state is left, and no worker has ended well;
///     - all workers fail before the first round;
///     - no worker has started, and none of the hosts can be used;
///     - the reset limit is exceeded;
///     - min_ranks is not reached within the timeout;
///     - kMostFruitlessRounds are reached;
///     - workers of the last round fail after the last worker that ended well, and no worker has
///       announced its end.
///   A worker of the round that has not asked within the timeout, while others wait, is stopped.
Decision decide(TimePoint now, const State& state, const ElasticOptions& options);

}  // namespace peal::launch::elastic
