// The front door: from the environment to a process group, with every part wired here and nowhere
// else.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "peal/base/fault_plan.h"
#include "peal/base/report.h"
#include "peal/group/process_group.h"

namespace peal {

namespace store {
class Store;
}

struct InitOptions {
  /// env:// (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and what Slurm, Open MPI, MPICH and
  /// torchrun set), tcp://host:port, file:///path.
  std::string init_method = "env://";
  /// Needed by tcp:// and file:// unless the URL or the environment says them.
  std::optional<Rank> rank;
  std::optional<int> world_size;
  /// Where the ranks meet that share a store already (store/store.h), as another library's; with
  /// `rank` and `world_size`. Nothing else may use its keys, nor the next meeting: give each a
  /// store::make_prefix_store of its own. With PEAL_SECRET each value in it bears a seal, so that
  /// other programs may reach the store; a secret that rank 0 makes is only as safe as the store.
  std::shared_ptr<store::Store> store = nullptr;
  /// Whether the ranks are those of the launcher's job, of whom PEAL_FLIGHT_DIR keeps records and
  /// PEAL_INJECT speaks. A group of some of them that meets on its own is not: it does neither.
  bool is_whole_job = true;
  /// Whether the launcher of this process has started all ranks of the group. Where it has put them
  /// on this machine, they meet at a unix socket and take nothing but its name from `store`.
  bool is_of_job = true;
  std::string backend = "native";
  /// Of rendezvous, connection and every operation. kGroupTimeout: PEAL_TIMEOUT, or 5 minutes.
  Timeout timeout = kGroupTimeout;
  Report report = silent_report();
  /// Called now and then by a call that waits, on the thread that waits: this one, and those of the
  /// group and of groups made of it; but not by Work::wait, which takes a timeout, nor where a
  /// group ends by its last reference. By throwing it ends the call within a second, and the group,
  /// as ProcessGroup::abort does; what is no Error becomes one there, of kind peer_lost. This call
  /// or new_group makes none then, and says so to who has come. So a program whose signal handlers
  /// only take notes, as Python's, can end a call that waits.
  std::function<void()> interrupt = {};
  /// What is to go wrong, as a rehearsal (`parse_faults`), the same on all ranks. Empty: what
  /// PEAL_INJECT says. Faults that are injected are reported as a warning.
  FaultPlan faults = {};
};

/// Meets the other ranks and returns the group of all of them. For each place to meet, a
/// process can be in one such group at a time, with the groups made of it. (A group of one needs no
/// place.)
/// Order: called by every rank of the job.
/// Errors: usage (what is missing, given twice or contradicts; a fault of a rank that is not
/// there, or between ranks that share memory), timeout (who did not come),
/// mismatch (ranks that were given different transports), peer_lost, resource, unsupported (no such
/// backend).
ProcessGroupPtr init_process_group(const InitOptions& options = {});

}  // namespace peal
