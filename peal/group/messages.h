// Point-to-point messages between two ranks: a part of ProcessGroup (process_group.h).
#pragma once

#include <cstdint>
#include <span>

#include "peal/base/units.h"
#include "peal/group/buffer.h"
#include "peal/group/options.h"
#include "peal/group/work.h"

namespace peal {

struct GroupState;

/// One operation in a batch of sends and receives.
struct PointToPoint {
  enum class Kind : std::uint8_t { kSend, kRecv };
  Kind kind = Kind::kSend;
  Buffer buffer;  // only read by a send
  Rank peer = 0;  // kAnySource is allowed for a receive
  Tag tag;
};

/// A rank may send to itself. A timeout of kGroupTimeout means the timeout of the group.
/// Order: messages from one rank to another with the same tag do not overtake each other. Receives
///   that match the same message take it in the order in which they were called.
/// Threads: any number at once.
/// Errors: The call throws usage (a rank that does not exist, a negative tag); the group stays
///   usable. mismatch (the receive has another count or type), peer_lost, timeout and resource end
///   the group: from then on, every call of every rank throws the same error. A mismatch is thrown
///   on both sides; if the send has returned, the sender's next call throws it. After an error
///   another rank may still be reading the registered memory of a send. That rank discards what it
///   reads.
/// Memory: a message of up to 16 KiB is sent without waiting for its receive, and the receiver
///   keeps it until then. A receiver keeps at most 16 MiB from each rank, or 256 MiB divided by the
///   number of ranks if the group has more than 16. Each message counts its payload and 256 bytes.
///   Beyond that bound a message waits at its sender until its receive is called, or until the
///   receiver has received other messages. A message of more than 16 KiB always waits for its
///   receive. A waiting message does not block others: receives of other tags find their messages.
///   The receiver frees the memory of a message when the message is received.
/// Cost: up to 16 KiB one message, which the receiver copies if it arrives before its receive. A
///   larger message, or a message that waits, sends an offer first. On a host that shares memory
///   the receiver copies registered memory (ProcessGroup::allocate) directly: S bytes read and S
///   written. All other data comes in pieces: through a ring of the host, which copies once more,
///   or through the network.
/// Source: the MPI standard, 4.0, chapter 3.
class Messages {
 public:
  /// Returns when `data` may be written again: at once if the message need not wait, otherwise when
  /// it has left. A return does not mean that the receiver has the message.
  /// Errors: as above; the timeout of a waiting message says how many messages are before it.
  void send(const ConstBuffer& data, Rank to, const MessageOptions& options = {});

  /// data = the message that `from` sent with this tag; with kAnySource, the first such message of
  /// any rank. Returns the source.
  /// Shape: the send's count and type.
  Rank recv(const Buffer& data, Rank from = kAnySource, const MessageOptions& options = {});

  /// The same without waiting: `data` belongs to the operation until the Work has ended.
  WorkPtr isend(const ConstBuffer& data, Rank to, const MessageOptions& options = {});
  WorkPtr irecv(const Buffer& data, Rank from = kAnySource, const MessageOptions& options = {});

  /// Starts all operations at once, so that no order of them can block another; one Work for all.
  WorkPtr batch_isend_irecv(std::span<const PointToPoint> batch, const CallOptions& options = {});

 protected:
  /// The state must outlive this object.
  explicit Messages(GroupState& state) : state_(state) {}
  ~Messages() = default;

 private:
  GroupState& state_;
};

}  // namespace peal
