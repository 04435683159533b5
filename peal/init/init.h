// The entry point: makes a process group from the environment. All parts of peal are wired here and
// nowhere else.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/base/report.h"
#include "peal/config/fault_plan.h"
#include "peal/group/process_group.h"

namespace peal {

namespace store {
class Store;
}

struct InitOptions {
  /// env:// (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and what Slurm, Open MPI, MPICH and
  /// torchrun set), tcp://host:port, file:///path.
  std::string init_method = "env://";
  /// For tcp:// and file://, needed unless the URL or the environment gives them.
  std::optional<Rank> rank;
  std::optional<int> world_size;
  /// The meeting place of ranks that already share a store (store/store.h), for example of another
  /// library. Needs `rank` and `world_size`. No other code may use its keys, and neither may the
  /// next meeting: give each meeting its own store::make_prefix_store. With PEAL_SECRET each value
  /// is sealed, so other programs may have access to the store. If rank 0 makes the secret, the
  /// secret is only as safe as the store.
  std::shared_ptr<store::Store> store = nullptr;
  /// Whether the group has all ranks of the launcher's job. PEAL_FLIGHT_DIR and PEAL_INJECT are for
  /// those ranks. A group of some of them that meets on its own does not use these variables.
  bool is_whole_job = true;
  /// Whether the launcher of this process has started all ranks of the group. If it started them on
  /// this machine, the ranks meet at a unix socket, and take only its name from `store`.
  bool is_of_job = true;
  /// The folder for this rank's record of its last operations (`peal why`). Empty: PEAL_FLIGHT_DIR,
  /// if the group is the whole job.
  std::string flight_dir = {};
  std::string backend = "native";
  /// For rendezvous, connection and every operation. kGroupTimeout: PEAL_TIMEOUT, or 5 minutes.
  Timeout timeout = kGroupTimeout;
  /// The network interfaces to publish and connect from, in the form of PEAL_INTERFACE. Empty: that
  /// variable.
  std::string interfaces = {};
  Report report = silent_report();
  /// Lets a program end a blocking call, for example when signal handlers only set a flag, as in
  /// Python. A waiting call calls this function from time to time, on the waiting thread: this
  /// call, the operations of the group, and those of groups made of it. Work::wait, which has a
  /// timeout, does not call it, and neither does the end of a group by its last reference. If the
  /// function throws, the call ends within a second, and the group ends as with
  /// ProcessGroup::abort. An exception that is not an Error becomes an Error of kind aborted.
  /// This call, or new_group, then makes no group, and notifies the ranks that have come. The
  /// function may abort the group. If it calls operations of the group, new_group or destroy, these
  /// throw usage, because they would wait for the call that is interrupted.
  std::function<void()> interrupt = {};
  /// Faults to inject, as a rehearsal (`parse_faults`), the same on all ranks. Empty: those of
  /// PEAL_INJECT. A warning reports injected faults.
  FaultPlan faults = {};
};

/// Meets the other ranks and returns the group of all ranks. A process can be in one such group at
/// a time for each meeting place, with the groups made of it. (A group of one needs no place.)
/// Order: called by every rank of the job.
/// Errors: usage (a setting is missing, given twice or contradictory; an injected fault that cannot
///   occur), timeout (names the missing ranks), mismatch (ranks have different transports),
///   peer_lost, resource, unsupported (no such backend), aborted (the interrupt threw).
ProcessGroupPtr init_process_group(const InitOptions& options = {});

}  // namespace peal
