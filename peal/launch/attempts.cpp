#include "peal/launch/attempts.h"

#include <algorithm>

#include <fmt/format.h>

namespace peal::launch {
namespace {

/// 2^20 times the first pause is longer than any longest pause.
constexpr int kMostDoublings = 20;

double seconds(Timeout time) { return static_cast<double>(time.count()) / 1000.0; }

/// "node2: no sign of life for 2 s; node3: no answer within 60 s"
std::string reasons(const AttemptState& state) {
  std::string text;
  for (const AttemptHost& host : state.hosts) {
    if (host.failures == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", host.host.name, host.why);
  }
  return text;
}

/// The first hosts that are not barred, as many as are needed for `ranks` ranks.
BeginAttempt choose(TimePoint now, const AttemptState& state, int ranks, const RoomFor& room) {
  BeginAttempt chosen;
  for (const AttemptHost& host : state.hosts) {
    if (now < host.barred_until || chosen.ranks >= ranks) continue;
    chosen.hosts.push_back(host.host);
    chosen.ranks = room(chosen.hosts);
  }
  chosen.ranks = std::min(chosen.ranks, ranks);
  return chosen;
}

TimePoint first_release(TimePoint now, const AttemptState& state) {
  TimePoint first = TimePoint::max();
  for (const AttemptHost& host : state.hosts) {
    if (host.barred_until > now) first = std::min(first, host.barred_until);
  }
  return first;
}

}  // namespace

int slots_of(std::span<const HostSlots> hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

AttemptDecision next_attempt(TimePoint now,
                             const AttemptState& state,
                             const AttemptRules& rules,
                             const RoomFor& room) {
  if (now < state.not_before) return Pause{state.not_before};
  if (state.hosts.empty()) return BeginAttempt{.hosts = {}, .ranks = rules.most_ranks};
  BeginAttempt chosen = choose(now, state, rules.most_ranks, room);
  if (chosen.ranks >= rules.least_ranks) return chosen;
  const TimePoint release = first_release(now, state);
  const TimePoint end = state.waiting_since + rules.host_timeout;
  if (release > end || now >= end) {
    return GiveUp{fmt::format("there is room for {} ranks, and the job needs {}, for {} s: {}",
                              chosen.ranks,
                              rules.least_ranks,
                              seconds(rules.host_timeout),
                              reasons(state))};
  }
  return Pause{
      release,
      fmt::format("the job waits for hosts: there is room for {} ranks, and it needs {}: {}",
                  chosen.ranks,
                  rules.least_ranks,
                  reasons(state))};
}

bool may_restart(const AttemptState& state, const AttemptRules& rules) {
  return state.restarts < rules.restarts.most;
}

void restart_after_failure(AttemptState& state, TimePoint now, const AttemptRules& rules) {
  const Timeout pause =
      std::min(rules.restarts.longest_pause,
               rules.restarts.first_pause * (1 << std::min(state.restarts, kMostDoublings)));
  state.not_before = now + pause;
  state.waiting_since = now;
  ++state.restarts;
}

void bar_host(AttemptState& state,
              TimePoint now,
              std::string_view name,
              const std::string& why,
              const AttemptRules& rules,
              double random) {
  for (AttemptHost& host : state.hosts) {
    if (host.host.name != name) continue;
    host.barred_until =
        std::max(host.barred_until, now + cooldown_after(host.failures, rules.cooldown, random));
    host.why = why;
    ++host.failures;
  }
}

}  // namespace peal::launch
