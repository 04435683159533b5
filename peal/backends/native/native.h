// peal's own backend: schedules, planned by `plan` and walked by `engine` over a transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "peal/backends/native/lost_peer.h"
#include "peal/base/config.h"
#include "peal/base/fault_plan.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_recorder.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// Connects some ranks of the world (by their ranks there) to each other and calls `use` with the
/// transport. Called by each of them with the same name, which no other group of the job has. If
/// `use` throws on one rank, it throws on all. While some have not come it calls `look` now and
/// then, unless that is empty: what it throws ends the wait.
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
  /// Of this group's operations and those of its sub-groups, the world's group first; or none.
  std::shared_ptr<observe::FlightRecorder> recorder = nullptr;
  /// Where whoever started the ranks notes how they end; or nowhere.
  observe::EndPlace ends = {};
  /// What is to befall processes in this group, not in its sub-groups; those of links are the
  /// transport's.
  FaultPlan faults = {};
  /// Told of those that were never reached.
  Report report = silent_report();
  /// As InitOptions has it (init/init.h); of this group and its sub-groups.
  std::function<void()> interrupt = {};
  /// As the groups have heard it that this one was made of; empty for the world's.
  WhatWasThrown what_was_thrown = {};
  /// How many of the host's this rank may keep busy, as the world's group knows it: other groups
  /// need not have all ranks of the host. Nothing for the world's.
  std::optional<int> cpus = std::nullopt;
  /// The most that a rank keeps of one peer's small messages (engine/eager_mail.h), the same on
  /// every rank. By default it follows from the size of the group; tests set a small bound.
  std::optional<Bytes> eager_bound = std::nullopt;
};

/// Connects the group, with `look` as Connect has it. A group of one connects nothing.
/// Errors: usage (no such algorithm), and those of `connect`.
std::unique_ptr<Backend> make_backend(Options options,
                                      Deadline deadline,
                                      const std::function<void()>& look = {});

}  // namespace peal::native
