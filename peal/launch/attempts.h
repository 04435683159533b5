// When a failed job starts again, and on which hosts: pure functions of the time, the state and the
// rules. Each attempt starts all ranks; programs continue from their checkpoints.
// (In an elastic job, processes survive: elastic/decide.h.) Called by
// attempt_loop.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/cooldown.h"
#include "peal/launch/host_list.h"
#include "peal/launch/job/job.h"

namespace peal::launch {

struct AttemptRules {
  int least_ranks = 1;  // with fewer, the job waits for hosts
  int most_ranks = 1;
  Restarts restarts{};
  Cooldown cooldown{};
  Timeout host_timeout{600'000};    // how long the job waits for hosts
  Timeout ask_slurm_every{60'000};  // while Slurm preempts the job
  friend bool operator==(const AttemptRules&, const AttemptRules&) = default;
};

struct AttemptHost {
  HostSlots host;
  int failures = 0;
  TimePoint barred_until{};  // until then the host gets no ranks
  std::string why{};         // of the last failure
  friend bool operator==(const AttemptHost&, const AttemptHost&) = default;
};

struct AttemptState {
  std::vector<AttemptHost> hosts;  // as the user named them; none: all ranks are on this machine
  int restarts = 0;                // how often the job has started again
  TimePoint not_before{};          // the pause after a failure
  TimePoint waiting_since{};       // for hosts
  friend bool operator==(const AttemptState&, const AttemptState&) = default;
};

struct BeginAttempt {
  std::vector<HostSlots> hosts;
  int ranks = 0;
  friend bool operator==(const BeginAttempt&, const BeginAttempt&) = default;
};

struct Pause {
  TimePoint until{};
  std::string why{};  // of a wait for hosts; empty: the pause after a failure
  friend bool operator==(const Pause&, const Pause&) = default;
};

struct GiveUp {
  std::string why;
  friend bool operator==(const GiveUp&, const GiveUp&) = default;
};

using AttemptDecision = std::variant<BeginAttempt, Pause, GiveUp>;

/// How many ranks of the job have room on these hosts.
using RoomFor = std::function<int(std::span<const HostSlots> hosts)>;
/// The sum of the slots: for jobs whose ranks may be on any host.
int slots_of(std::span<const HostSlots> hosts);

/// An attempt begins on the hosts that are not barred, in their order, as many as are needed for
/// most_ranks. So the last hosts of the list are spare: they replace hosts that are lost. With
/// room for fewer than least_ranks, the job waits for barred hosts, and gives up after
/// host_timeout.
AttemptDecision next_attempt(TimePoint now,
                             const AttemptState& state,
                             const AttemptRules& rules,
                             const RoomFor& room = slots_of);

/// Whether another attempt may follow a failure.
bool may_restart(const AttemptState& state, const AttemptRules& rules);

/// Notes that an attempt has failed, and sets the pause before the next one. The pause doubles.
void restart_after_failure(AttemptState& state, TimePoint now, const AttemptRules& rules);

/// Notes that the host was lost or cannot be used. The host then gets no ranks for a while.
/// `random` in [0, 1).
void bar_host(AttemptState& state,
              TimePoint now,
              std::string_view name,
              const std::string& why,
              const AttemptRules& rules,
              double random);

}  // namespace peal::launch
