// The public interface of peal: a group of ranks and its operations.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"
#include "peal/group/collectives.h"
#include "peal/group/messages.h"
#include "peal/system/stop_requests.h"

namespace peal {

class ProcessGroup;
using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

struct GroupOptions {
  std::string name = "world";
  Timeout timeout = std::chrono::minutes(5);
  std::vector<Rank> global_ranks = {};  // by rank; empty: the group is the world
  std::string stop_flag = {};           // of this process, for StopRequests
};

/// The color for ranks that join none of the new groups.
inline constexpr int kNoColor = -1;

/// All ranks are ranks of this group, 0 .. size() - 1, also roots and peers. messages.h and
/// collectives.h have the operations. This class has the properties of a group, subgroups, memory
/// and the end of a group.
/// Threads: any number at once, but collectives (collectives.h) one at a time.
/// Forks: a forked child is not in the group. Its calls throw usage. In the child, destroy, abort
///   and the destructor do nothing. Peers notice the end of the rank also if children of the rank
///   live on (docs/decisions/0029).
class ProcessGroup final : public Messages, public Collectives {
 public:
  using Options = GroupOptions;

  ProcessGroup(std::unique_ptr<Backend> backend, Options options);
  /// As destroy(), without throwing. Waits one second for running operations, and without a limit
  /// for callbacks that have begun. Does not call InitOptions::interrupt. A rank that leaves
  /// because of an exception is named as such in its peers' errors.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Rank rank() const;
  int size() const;
  const std::string& name() const;
  Timeout timeout() const;
  const Capabilities& capabilities() const;
  /// The rank in the world of a rank of this group. Errors: usage.
  Rank global_rank(Rank rank) const;

  /// A group of `ranks` (of this group), in that order. `timeout` limits this call; operations of
  /// the new group have the timeout of this group.
  /// Order: only the members call it, with the same ranks. All members make several groups of the
  ///   same ranks in the same order.
  /// Errors: usage (a rank twice, a rank that is not in this group, this rank not among them),
  ///   timeout, peer_lost. This group stays usable.
  /// Cost: a rendezvous of the members through the store, and new connections.
  ProcessGroupPtr new_group(std::span<const Rank> ranks, Timeout timeout = kGroupTimeout);

  /// One group for each color, its ranks ordered by (key, rank); nullptr for kNoColor. `timeout` is
  /// as in new_group, and limits the all_gather and the new group each.
  /// Order: a collective, called by all ranks.
  /// Errors: usage (a negative color); those of all_gather and new_group.
  /// Cost: an all_gather of 8 bytes and a new_group.
  ProcessGroupPtr split(int color, int key = 0, Timeout timeout = kGroupTimeout);

  /// Zeroed memory that peers of the host can reach, so that operations on it need no copy. Plain
  /// memory if peers cannot share memory. The memory lives as long as it is used, also longer than
  /// the group. After a failed operation on it, peers may still write into it: see Work (work.h).
  /// Errors: usage (a negative size, a group that was destroyed), resource.
  Memory allocate(Bytes size);

  /// Makes existing memory, such as a tensor's, work like memory of `allocate`: operations on it
  /// need no copy, as long as the registration (or a copy of it) lives. The memory keeps its
  /// address and its content. Does nothing, and checks nothing, if peers share no memory.
  /// After a failed operation on it, peers may still write into it until the registration has
  /// ended: see Work (work.h).
  ///   Accepted memory: private, readable and writable, not of a file, as from malloc, new and
  ///   LibTorch. Its whole pages are replaced by shared pages. The rest at both ends, less than a
  ///   page each, is copied in each operation. Memory without a whole page is not changed. The
  ///   owner must keep the memory: end the registration before the memory is freed or reallocated.
  ///   A process that is forked meanwhile shares the memory, and does not get a copy. Devices and
  ///   drivers must not hold its pages (cudaHostRegister, RDMA). Register it with one group at a
  ///   time.
  /// Order: local; peers need not do the same. An operation needs no copy if the memory of all its
  ///   ranks is registered or allocated.
  /// Threads: no other thread writes to the memory during this call, nor while the registration
  ///   ends. No operation on the memory may be running while the registration ends.
  /// Errors: usage (nothing is mapped there; a group has already registered or allocated some of
  ///   it), unsupported (memory of a file, of the main thread's stack, shared or read-only memory:
  ///   use allocate instead), resource. After an error the memory has the same content as before.
  ///   Another thread's stack cannot be recognised, and must not be registered. To make the memory
  ///   private again, after an error or when the registration ends, peal needs a file descriptor
  ///   and memory. If the system lacks them, the memory keeps its content, stays shared with the
  ///   peers, and cannot be registered again.
  /// Cost: a copy within the machine, here and when the registration ends, in steps of 16 MiB, with
  ///   memory for one step; each time one read of /proc/self/maps.
  [[nodiscard]] Registration register_memory(void* memory, Bytes size);

  /// result = whether the process of any rank was asked to stop; the same on all ranks. Call it
  /// once in each step. After true, save, and end with exit code 0.
  /// A process is asked by its launcher, before a time limit or at the end of the job, and by
  /// SIGTERM or SIGINT (docs/guide/stop.md). After a request, all later calls return true.
  /// This rank notes requests from its first call until the group ends. Before and after this time,
  /// SIGTERM ends the process.
  /// Order: a collective, called by all ranks equally often. Errors: those of all_reduce. Cost: an
  /// all_reduce of one byte.
  bool should_stop(Timeout timeout = kGroupTimeout);
  /// Notes requests to this process while the result lives. For programs whose ranks agree in
  /// another way than should_stop. Order: local.
  std::unique_ptr<StopRequests> note_stop_requests() const;

  /// As Backend::flight_notes. For libraries whose operations consist of several of this group's.
  std::shared_ptr<FlightNotes> flight_notes() const;

  /// Ends every operation with Error(aborted, reason), now and in future, on this rank and the
  /// peers.
  void abort(const std::string& reason);
  /// The same, for a rank that leaves the group because of an exception with the text `what`. The
  /// error is peer_lost, with the cause kThrew: "rank 1 threw: out of luck".
  /// tell_peers_of_exceptions (tell_peers.h) calls it.
  void abort_by_exception(const std::string& what);

  /// Leaves the group, so that no peer takes this rank for lost. Later calls throw usage.
  /// Waits at most `timeout` for running collectives, and for large sends that no receive has taken
  /// yet. Waits without a limit for callbacks of Works that have begun: such a callback must not
  /// wait for anything that the caller does next. A second call does nothing.
  /// A peer that still needs this rank gets peer_lost: it "has left the group". If this call runs
  /// while an exception unwinds the stack, the text adds "because of an exception". In a catch
  /// block, no exception unwinds any more: call abort() there to give the peers the reason, or use
  /// tell_peers_of_exceptions (tell_peers.h).
  /// Errors: usage (called by InitOptions::interrupt inside an operation of the group; the
  ///   operation continues; set a flag in the interrupt, or abort). timeout (collectives were still
  ///   running), the error from InitOptions::interrupt: after these errors the group has ended
  ///   nevertheless. Sends and receives that are open at the end are not errors of this call: their
  ///   Works fail.
  void destroy(Timeout timeout = kGroupTimeout);

 private:
  explicit ProcessGroup(std::unique_ptr<GroupState> state);

  std::unique_ptr<GroupState> state_;
};

}  // namespace peal
