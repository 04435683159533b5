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
/// Memory: a message of up to 16 KiB is sent without waiting for its receive, and the receiver
/// keeps
///   it until then: at most 16 MiB from each rank, or 256 MiB divided by the number of ranks if the
///   group has more than 16. Each message counts its payload and 256 bytes. Beyond that bound a
///   message waits at its sender until its receive is called, or until the receiver has received
///   other messages. A message of more than 16 KiB always waits for its receive. A waiting message
///   does not block others: receives of other tags find their messages. The receiver frees the
///   memory of a message when the message is received.
/// Cost: up to 16 KiB one message, which the receiver copies if it arrives before its receive. A
///   larger message, or a message that waits, sends an offer first. On a host that shares memory
///   the receiver copies registered memory (ProcessGroup::allocate) directly: S bytes read and S
///   written. All other data comes in pieces: through a ring of the host, which copies once more,
///   or through the network.
/// Source: the MPI standard, 4.0, chapter 3.
class Messages {
 public:
  /// Returns when `data` may be written again: at once if the message need not wait, else when it
  /// has left. A return does not mean that the receiver has the message.
  /// Errors: as above; the timeout of a waiting message says how many messages are before it.
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
