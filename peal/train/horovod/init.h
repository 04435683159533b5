// Horovod's start and end: the ranks of the job, as one context of the process. For training
// programs, by peal/horovod.h.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"

namespace peal::hvd {

struct InitOptions {
  /// Only these ranks of the job take part, with new numbers in this order. Empty: all ranks.
  std::vector<Rank> ranks = {};
  /// The process sets 1, 2, ...: the same lists on all ranks.
  std::vector<std::vector<Rank>> process_sets = {};
  /// Whether process sets may be added after init; HOROVOD_DYNAMIC_PROCESS_SETS=1 does the same.
  enum class ProcessSets : std::uint8_t { kStatic, kDynamic } mode = ProcessSets::kStatic;
  /// Whether ranks that have joined take part in all operations, without data. Horovod refuses all
  /// but allreduce.
  enum class WhileJoined : std::uint8_t {
    kAllReduceOnly,
    kAll
  } while_joined = WhileJoined::kAllReduceOnly;
  Report report = silent_report();
  /// As in peal::InitOptions: ends a waiting call by throwing.
  Interrupt interrupt = {};
  /// What this rank's program is doing, for the stall reports of other ranks.
  std::function<std::string()> whereabouts = {};
  /// Throws the error in another form. Called if an operation in a backward pass fails.
  std::function<void(const std::exception_ptr&)> leave_backward = {};
};

/// Meets the other ranks. A second call before shutdown does nothing. Reads the environment: the
/// variables HOROVOD_* (settings.h), and for the meeting those of init_process_group. The rank is
/// HOROVOD_RANK of HOROVOD_SIZE, else as in init_process_group: without a launcher, a world of one.
/// In an elastic job, the driver gives the rank (elastic.h).
/// Order: called by every rank. shutdown and init may follow each other any number of times.
/// Errors: usage (a wrong variable; this rank is not in options.ranks; a set of unknown, duplicate
///   or no ranks), mismatch (ranks pass different process sets), those of init_process_group.
void init(const InitOptions& options = {});

/// Fails the pending operations with aborted, also those for which other threads wait, and leaves
/// the other ranks. Does nothing before init.
/// Threads: no other thread starts operations meanwhile.
void shutdown();

bool is_initialized();

// Errors: usage, before init.
Rank rank();
int size();
Rank local_rank();
int local_size();
Rank cross_rank();
int cross_size();
/// Whether all hosts have the same number of ranks.
bool is_homogeneous();
/// The group of all ranks, for the other parts of peal, such as checkpoints. Horovod's operations
/// have groups of their own. Release it before shutdown.
/// Errors: usage, before init.
ProcessGroupPtr process_group();

/// Writes a file of Chrome's trace format on rank 0; on each rank if the path contains "{rank}".
/// Replaces a timeline that runs.
/// Errors: usage (HOROVOD_TIMELINE was not set at init, which chooses timelines), resource.
enum class MarkCycles : std::uint8_t { kNo, kYes };
void start_timeline(const std::string& path, MarkCycles mark = MarkCycles::kNo);
/// Does nothing if no timeline runs.
void stop_timeline();

}  // namespace peal::hvd
