// What two ranks of a group do together: the half of ProcessGroup (process_group.h) that is called
// by a sender and a receiver.
#pragma once

#include <cstdint>
#include <span>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/work.h"

namespace peal {

struct GroupState;

/// One of a batch of sends and receives.
struct PointToPoint {
  enum class Kind : std::uint8_t { kSend, kRecv };
  Kind kind = Kind::kSend;
  Buffer buffer;  // only read by a send
  Rank peer = 0;  // kAnySource is allowed for a receive
  Tag tag;
};

/// A rank may send to itself. A timeout of kGroupTimeout is the group's own.
/// Order: messages from one rank to another with the same tag do not overtake each other; receives
///   that fit the same message take it in the order in which they were called.
/// Threads: any number at once.
/// Errors: usage (a rank that is none, a negative tag), thrown by the call, leaves the group as it
///   was. mismatch (the receive has another count or type; thrown on both sides, where the send has
///   returned by the sender's next call), peer_lost, timeout and resource poison the group: every
///   call of every rank throws the same from then on.
///   After an error another rank may still be reading registered memory that it was sent from: it
///   throws away what it reads.
/// Memory: a message of up to 16 KiB goes before its receive is there, and the receiver keeps it.
///   From each rank the receiver keeps at most 16 MiB, in a group of more than 16 ranks 256 MiB
///   divided by their number: payload, and 256 bytes a message. Beyond that a message waits at its
///   sender, as one of more than 16 KiB always does, until its receive is called or the receiver
///   has taken others. A message that waits stands in no other's way: receives of other tags find
///   theirs. What is kept is given back when it is received.
/// Cost: up to 16 KiB one message, which the receiver copies if it comes before its receive; beyond
///   that, and for a message that waits, an offer first. Registered memory (ProcessGroup::allocate)
///   on a host that shares memory the receiver copies from where it lies: S bytes read and S
///   written. All other data comes in pieces: the same once more, through a ring of the host, or
///   through the network.
/// Source: the MPI standard, 4.0, chapter 3.
class Messages {
 public:
  /// Returns when `data` may be written again, which says nothing of the receiver. For a message
  /// that waits at its sender that is when it has left.
  /// Errors: as above; a timeout of a message that waits says how many are before it.
  void send(ConstBuffer data, Rank to, Tag tag = {}, Timeout timeout = kGroupTimeout);

  /// data = what `from`, or with kAnySource the first who did, sent with this tag; returns who did.
  /// Shape: the send's count and type.
  Rank recv(Buffer data, Rank from = kAnySource, Tag tag = {}, Timeout timeout = kGroupTimeout);

  /// The same without waiting: `data` belongs to the operation until the Work has ended.
  WorkPtr isend(ConstBuffer data, Rank to, Tag tag = {}, Timeout timeout = kGroupTimeout);
  WorkPtr irecv(Buffer data, Rank from = kAnySource, Tag tag = {}, Timeout timeout = kGroupTimeout);

  /// Starts all of them at once, so that no order of them can block another; one Work for all.
  WorkPtr batch_isend_irecv(std::span<const PointToPoint> batch, Timeout timeout = kGroupTimeout);

 protected:
  /// The state outlives this.
  explicit Messages(GroupState& state) : state_(state) {}
  ~Messages() = default;

 private:
  GroupState& state_;
};

}  // namespace peal
