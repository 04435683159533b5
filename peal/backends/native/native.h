// peal's own backend: schedules, planned by `plan` and executed by `engine` over a transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "peal/backends/native/lost_peer.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/config/config.h"
#include "peal/config/fault_plan.h"
#include "peal/group/backend.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_recorder.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// Connects some ranks of the world (by their ranks there) to each other and calls `use` with the
/// transport. Each of these ranks calls it with the same name, which no other group of the job has.
/// If `use` throws on one rank, it throws on all. While ranks are missing it calls `look` now and
/// then, unless `look` is empty. An exception of `look` ends the wait.
using UseTransport = std::function<void(std::unique_ptr<transport::Transport>)>;
using Connect = std::function<void(std::span<const Rank> world_ranks,
                                   const std::string& group,
                                   Deadline deadline,
                                   const std::function<void()>& look,
                                   const UseTransport& use)>;

struct Options {
  std::string group = "world";
  std::vector<Rank> world_ranks;  // of this group's ranks, in order
  Rank rank = 0;                  // in this group
  Config config;
  Connect connect;  // for this group's transport and those of its sub-groups
  /// For the operations of this group and its sub-groups, the world's group first; may be null.
  std::shared_ptr<observe::FlightRecorder> recorder = nullptr;
  /// Where the launcher records how ranks end; may be empty.
  observe::EndPlace ends = {};
  /// The faults of processes in this group, not in its sub-groups. The transport injects those of
  /// links.
  FaultPlan faults = {};
  /// Receives the faults that were never reached.
  Report report = silent_report();
  /// As in InitOptions (init/init.h), for this group and its sub-groups.
  std::function<void()> interrupt = {};
  /// Reads the exceptions that were reported to the parent groups; empty for the world's group.
  WhatWasThrown what_was_thrown = {};
  /// How many of the host's CPUs this rank may keep busy, as computed by the world's group, because
  /// other groups need not have all ranks of the host. Empty for the world's group.
  std::optional<int> cpus = std::nullopt;
  /// The most that a rank keeps of one peer's small messages (mail/eager_mail.h), the same on every
  /// rank. By default it follows from the size of the group; tests set a small bound.
  std::optional<Bytes> eager_bound = std::nullopt;
};

/// Connects the group, with `look` as in Connect. A group of one connects nothing.
/// Errors: usage (unknown algorithm), and those of `connect`.
std::unique_ptr<Backend> make_backend(Options options,
                                      Deadline deadline,
                                      const std::function<void()>& look = {});

}  // namespace peal::native
