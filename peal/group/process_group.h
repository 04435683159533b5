// The public face of peal: a group of ranks and what they can do together.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/backend.h"
#include "peal/group/block_collectives.h"
#include "peal/group/collectives.h"
#include "peal/group/messages.h"

namespace peal {

class ProcessGroup;
using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

struct GroupOptions {
  std::string name = "world";
  Timeout timeout = std::chrono::minutes(5);
  std::vector<Rank> global_ranks = {};  // by rank; empty: the group is the world
};

/// Called with no color by ranks that join none of the new groups.
inline constexpr int kNoColor = -1;

/// Ranks are ranks of this group, 0 .. size() - 1, roots and peers included. What it can do is in
/// messages.h, collectives.h and block_collectives.h; here is how it is asked, divided and ended.
/// Threads: any number at once, but collectives (collectives.h) one at a time.
/// Forks: a forked child is not in the group. Its calls throw usage; destroy, abort and the
///   destructor do nothing there, and peers notice the end of the rank whether or not it has
///   children that live on (docs/decisions/0029).
class ProcessGroup final : public Messages, public Collectives, public BlockCollectives {
 public:
  using Options = GroupOptions;

  ProcessGroup(std::unique_ptr<Backend> backend, Options options);
  /// As destroy(), without throwing: operations under way have a second, callbacks that have begun
  /// until they return, and InitOptions::interrupt is not asked. So a rank whose exception ends the
  /// group is named as such by its peers' errors.
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

  /// A group of `ranks` (of this group), in that order.
  /// Order: called by its members only, with the same ranks; several groups of the same ranks are
  ///   made in the same order by all.
  /// Errors: usage (a rank twice or none of this group, the own one not among them), timeout,
  ///   peer_lost; this group stays as it was.
  /// Cost: a rendezvous of the members through the store, and new connections.
  ProcessGroupPtr new_group(std::span<const Rank> ranks, Timeout timeout = kGroupTimeout);

  /// One group for each color, its ranks ordered by (key, rank); nullptr for kNoColor.
  /// Order: a collective, called by all.
  /// Errors: usage (a negative color); of all_gather and new_group.
  /// Cost: an all_gather of 8 bytes and a new_group.
  ProcessGroupPtr split(int color, int key = 0, Timeout timeout = kGroupTimeout);

  /// Zeroed memory that peers of the host can reach, so that operations on it need no copy; plain
  /// memory where there is none such. It lives as long as it is used, beyond the group too.
  /// After an operation on it has failed, the peers may still write into it: see Work (work.h).
  /// Errors: usage (a negative size, a group that was destroyed), resource.
  Memory allocate(Bytes size);

  /// Makes memory that the caller has already, as a tensor's, such as `allocate` gives: operations
  /// on it need no copy, as long as the registration (or a copy of it) lives. It stays where it is,
  /// with what it holds. Does nothing, and looks at nothing, where peers share no memory.
  /// After an operation on it has failed, the peers may still write into it until the registration
  /// has ended: see Work (work.h).
  ///   What it takes: private memory that may be read and written and is no file's, as malloc, new
  ///   and LibTorch give. Its whole pages are replaced by shared ones; the rest of it at both ends,
  ///   less than a page each, is copied in each operation. Memory without a whole page stays as it
  ///   was.
  ///   Until it is given back, the owner keeps it: end the registration before it is freed or
  ///   reallocated. A process that is forked meanwhile shares it, and does not get a copy. Neither
  ///   a device nor a driver may hold its pages (cudaHostRegister, RDMA). One group at a time.
  /// Order: local; the peers need not do the same. An operation is without a copy where the memory
  ///   of all is registered or allocated.
  /// Threads: no other writes to the memory during this call, nor while the registration ends; no
  ///   operation on it is under way then.
  /// Errors: usage (no such memory, registered or allocated by a group already, overlapping what
  ///   is), unsupported (memory of a file, of the main thread's stack, shared or read-only:
  ///   allocate instead; another thread's stack looks like any memory, and is none to register),
  ///   resource. The memory holds what it held. Where the system has not even a file descriptor or
  ///   memory for the way back, here or when the registration ends, it keeps its contents but stays
  ///   shared, within the peers' reach, and cannot be registered again.
  /// Cost: a copy of it within the machine, here and when the registration ends, in steps of 16
  ///   MiB, for one of which it takes memory; one look at /proc/self/maps each time.
  [[nodiscard]] Registration register_memory(void* memory, Bytes size);

  /// Ends every operation, here and on the peers, now and in future, with Error(peer_lost, reason).
  void abort(const std::string& reason);
  /// The same by a rank that an exception is about to take out of the group, which threw `what`:
  /// "rank 1 threw: out of luck". tell_peers_of_exceptions (tell_peers.h) calls it.
  void abort_by_exception(const std::string& what);

  /// Leaves the group, so that peers do not take it for a loss; later calls throw usage. Waits at
  /// most `timeout` for the collectives under way, and for large sends that no receive has taken
  /// yet; but for callbacks of Works that have begun until they return, which is not to need what
  /// the caller does next. A second call does nothing.
  /// A peer that still needs this rank gets peer_lost: it "has left the group"; and, where this
  ///   runs while an exception unwinds, "because of an exception". In a catch block none unwinds
  ///   any more: call abort() there to give the peers the reason; or have it told by
  ///   tell_peers_of_exceptions (tell_peers.h).
  /// Errors: usage (called by InitOptions::interrupt inside an operation of the group, which goes
  ///   on; set a flag there, or abort), timeout (collectives were under way; the group is gone all
  ///   the same), peer_lost (so too, while an exception unwinds), the Error of what
  ///   InitOptions::interrupt throws (so too). Sends and receives that are open at the end are no
  ///   error of this call: their Works fail.
  void destroy(Timeout timeout = kGroupTimeout);

 private:
  explicit ProcessGroup(std::unique_ptr<GroupState> state);

  std::unique_ptr<GroupState> state_;
};

}  // namespace peal
