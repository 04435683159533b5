// The options of an elastic job: a value, made by `peal run` and `horovodrun`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/cooldown.h"
#include "peal/launch/host_list.h"

namespace peal::launch {

/// Where the hosts of a job are.
enum class HostsAre : unsigned char { kThisMachine, kAnyMachine };

struct ElasticOptions {
  int min_ranks = 1;               // with fewer workers the job waits
  std::optional<int> max_ranks{};  // nothing: all slots
  std::optional<int> max_hosts{};  // on which workers run; nothing: all hosts
  std::vector<HostSlots> hosts{};  // that do not change; empty: the script prints the hosts
  std::string discovery_script{};  // a program that prints lines of `host` or `host:slots`
  int slots = 1;                   // of a host for which the script prints no number
  Timeout timeout = std::chrono::minutes(10);   // to reach min_ranks, at the start and after losses
  std::optional<int> reset_limit{};             // how many resets are allowed; nothing: any number
  std::optional<Cooldown> cooldown{};           // nothing: the defaults of Cooldown
  HostsAre hosts_are = HostsAre::kThisMachine;  // decides at which addresses the driver listens
  friend bool operator==(const ElasticOptions&, const ElasticOptions&) = default;
};

/// Errors: usage; the text tells the user what to do.
void check(const ElasticOptions& options);

}  // namespace peal::launch
