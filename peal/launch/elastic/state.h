// The state of an elastic job as the driver sees it: a value, and the functions that change it when
// something happens. `decide` (decide.h) reads it. No function here reads a clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/host_list.h"
#include "peal/rendezvous/elastic_assignment.h"

namespace peal::launch::elastic {

using rendezvous::HostChanges;

HostChanges operator|(HostChanges a, HostChanges b);

/// The driver's way to a host. The drawing is in docs/guide/elastic.md.
enum class Reach : unsigned char {
  kNone,        // not connected
  kConnecting,  // its agent has not answered yet
  kReady,       // workers can start
};

struct Host {
  std::string name;
  int slots = 1;
  bool is_found = true;  // by the last run of the discovery script
  Reach reach = Reach::kNone;
  TimePoint since{};         // the beginning of kConnecting
  std::string problem{};     // why it could not be used or was lost; empty: that has not happened
  int failures = 0;          // of the host, and of workers on it
  TimePoint barred_until{};  // until then it is not connected, and gets no new workers
  friend bool operator==(const Host&, const Host&) = default;
};

/// The phases of a worker. The drawing is in docs/guide/elastic.md.
enum class Phase : unsigned char {
  kStarting,   // has not asked for a round yet
  kAsking,     // waits for the next round
  kTraining,   // in the current round
  kFinishing,  // has said that it will end well
  kLeaving,    // was removed, or is being stopped: its end does not count
  kSucceeded,  // ended with exit code 0
  kFailed,     // ended in another way
  kLeft,       // ended after it was removed
};

bool is_alive(Phase phase);

struct Worker {
  int number = 0;  // in the order of their starts
  std::string host;
  int slot = 0;
  Phase phase = Phase::kStarting;
  TimePoint since{};               // the beginning of the phase
  std::optional<Rank> rank{};      // in the current round; nothing: it is not a member
  bool has_state = false;          // of the training: from the first round, or received
  bool is_told_to_end = false;     // a leaving worker that was asked to end by a signal
  bool has_announced_end = false;  // it has said that it will end well
  friend bool operator==(const Worker&, const Worker&) = default;
};

/// "localhost[0]"
std::string name_of(const Worker& worker);

struct State {
  TimePoint begun{};
  std::vector<Host> hosts;  // the oldest first; hosts that are not found now keep only their past
  std::vector<Worker> workers;            // worker i at i; ended workers stay
  int round = 0;                          // 0: none has begun
  HostChanges told = HostChanges::kNone;  // what the workers of this round can know
  bool has_progress = false;              // a worker of this round has reached a commit
  bool has_own_failure = false;           // a worker of this round has failed by itself
  int fruitless = 0;  // the latest earlier rounds with an own failure and without progress
  friend bool operator==(const State&, const State&) = default;
};

/// A run of the discovery script. A host that was not found before is the youngest. A host that
/// vanishes loses its age, and keeps its failures.
void hosts_found(State& state, const std::vector<HostSlots>& found);

/// The driver begins to connect with the host.
void host_connects(State& state, TimePoint now, const std::string& host);
void host_ready(State& state, const std::string& host);
/// The driver has ended the connection with a host that it does not need.
void host_left(State& state, const std::string& host);
/// The host cannot be used, or is lost. It is barred as after a failure of a worker.
void host_failed(State& state,
                 TimePoint now,
                 const std::string& host,
                 const std::string& problem,
                 const ElasticOptions& options,
                 double random);

/// Returns the number of the new worker.
int worker_started(State& state, TimePoint now, const std::string& host, int slot);
/// A worker without the state is as a new one from now on: it has no rank.
void worker_asked(State& state, TimePoint now, int worker);
void worker_synchronized(State& state, int worker);
/// The worker has reached a commit, or another check for changes of the hosts.
void worker_progressed(State& state, int worker);
void worker_finishes(State& state, TimePoint now, int worker);

enum class WorkerEnd : unsigned char {
  kWell,
  kFailed,  // by itself: an exit code, or a crash
  kKilled,  // by a signal from outside, such as SIGKILL
  kLost,    // with its host
};

/// `status` as waitpid(2) gives it.
WorkerEnd end_of(int status);

/// A failure, also by a signal, bars the worker's host: after its failure k, from 0, for
///   min(high, low · 2^k + random · low), random in [0, 1).
/// A loss of the host does not: call host_failed.
void worker_ended(State& state,
                  TimePoint now,
                  int worker,
                  WorkerEnd end,
                  const ElasticOptions& options,
                  double random);

/// The worker gets the answer that it is removed.
void worker_leaves(State& state, TimePoint now, int worker);
/// The worker gets a signal to end.
void worker_stopped(State& state, TimePoint now, int worker);

/// A member of the next round.
struct Member {
  int worker = 0;
  rendezvous::ElasticAssignment place;  // without the store
};

/// The next round begins. Its members train. Workers that train in the old round and are not
/// members have lost their slots: they leave.
void round_began(State& state, TimePoint now, const std::vector<Member>& members);

/// The number of rounds in a row, the current round included, with an own failure and without
/// progress.
int fruitless_rounds(const State& state);

/// Whether the worker's slot still exists.
bool has_slot(const State& state, const Worker& worker);

}  // namespace peal::launch::elastic
