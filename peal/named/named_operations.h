// Operations by name: ranks submit them in any order, and the ranks agree on one order. The engine
// of Horovod's API (train/horovod).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/group/process_group.h"
#include "peal/named/operation.h"
#include "peal/named/request.h"
#include "peal/named/timeline.h"

namespace peal::named {

struct Options {
  /// Operations are carried out as one while their bytes together do not exceed this. 0: never.
  Bytes fusion_threshold = 128_MiB;
  /// How many operations the ranks remember: for these, an agreement is one small all_reduce.
  int cache_capacity = 1024;
  /// Whether the members of a group may be fused with other operations.
  enum class GroupFusion : std::uint8_t {
    kWithOthers,
    kAlone
  } group_fusion = GroupFusion::kWithOthers;
  /// What ranks that have joined allow. kAll: they contribute no rows to all-gather and
  /// all-to-all, and neutral elements to reduce-scatter.
  enum class WhileJoined : std::uint8_t {
    kAllReduceOnly,
    kAll
  } while_joined = WhileJoined::kAllReduceOnly;
  /// After how long a rank reports operations that other ranks have not submitted. 0: never.
  Timeout stall_warning = std::chrono::seconds(60);
  /// After how long such an operation ends the group. 0: never.
  Timeout stall_shutdown = std::chrono::seconds(0);
  Report report = silent_report();
  /// Tells in the stall report of other ranks what this rank's program is doing, such as a stack.
  std::function<std::string()> whereabouts = {};
  /// Called from time to time by a waiting thread; ends the wait by throwing.
  Interrupt interrupt = {};
  std::shared_ptr<TimelineSwitch> timeline = std::make_shared<TimelineSwitch>();
};

/// Ranks agree in rounds. A round is one small all_reduce over the names that each rank has
/// pending. If a rank has a name that is not in the cache, an all_gather follows. A second
/// all_gather follows if the requests of a rank are longer than 504 bytes. A rank enters a round as
/// soon as it has a pending operation, so no timer delays an operation. The thread that waits for
/// an operation runs the rounds. For asynchronous operations, a background thread runs them: at
/// once if the backend makes asynchronous progress, else after 10 ms in which no thread has waited.
///
/// The class uses all collectives of its group, and the tag 1 of its messages. Give it a group of
/// its own.
///
/// Order: any. Each rank submits an operation with the same name, before or after any other
///   operations. Construction is collective: it compares the options, and makes a group for the
///   stall check. Errors of construction: mismatch, those of ProcessGroup::new_group.
/// Threads: any number at once.
/// Errors: submit throws usage for local misuse. wait throws mismatch if ranks have submitted
///   different operations under one name, or groups of different sizes: on every rank, and the
///   group stays usable. Errors that end the group (peer_lost, timeout, aborted, ...) end all
///   pending operations on all ranks; each error names its operation. An exception of
///   Options::interrupt also ends the group. The waiting thread throws it; without a waiting
///   thread, the next thread that waits.
/// Forks: a forked child takes part in no operation. Its calls throw usage.
class NamedOperations final {
 public:
  NamedOperations(ProcessGroupPtr group, Options options);
  /// Fails the pending operations on all ranks with aborted, which ends the group. Without pending
  /// operations, the group stays usable.
  ~NamedOperations();
  NamedOperations(const NamedOperations&) = delete;
  NamedOperations& operator=(const NamedOperations&) = delete;

  ProcessGroup& group() const;

  struct Submission {
    Request request;
    Memory memory;
  };

  /// kAtOnce: the caller calls wait() next, so that no other thread needs to start.
  enum class Waits : std::uint8_t { kLater, kAtOnce };

  /// Starts the operations, all together if there are several: as a group, if they name one.
  /// Errors: usage (a name that is in flight; a name of more than 64 KiB), unsupported (the
  ///   reduction has no meaning for the type), resource (a thread cannot start), the error that has
  ///   ended the group. After an error, no operation has started.
  /// Cost: a lock and an entry in a hash table.
  OperationPtr submit(Submission submission, Waits waits = Waits::kLater);
  std::vector<OperationPtr> submit(std::vector<Submission> submissions,
                                   Waits waits = Waits::kLater);

  /// Returns when the operation has succeeded. Throws its error.
  void wait(const Operation& operation);
  /// Whether the operation has ended. Causes progress.
  bool poll(const Operation& operation);

  /// Takes part in the operations of the other ranks without data, until all ranks have joined.
  /// Returns the rank (of the group) that joined last, the same on all ranks.
  /// Threads: threads that call it at the same time take part in the same join.
  /// Errors: those that end the group.
  Rank join();
  /// The number of joins that have ended.
  std::uint64_t joins() const;

  /// The error that has ended the group; null while the group is usable.
  std::exception_ptr ended_by() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace peal::named
