// A connection as a stream of bytes in each direction, however they are guarded on their way:
//   plain_stream.h      as they are
//   checked_stream.h    in records with checksums
//   encrypted_stream.h  by TLS
// handshake.h makes the one that the ends were configured with. Used by transport for the links
// between ranks, and by store.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/base/units.h"
#include "peal/net/socket.h"

namespace peal::net {

/// A byte that the other end did not send is never read, except in a plain stream: what is damaged
/// on its way is an error, and a stream that ends anywhere just ends there (`closed`).
/// Threads: one at a time, but where it is said otherwise.
/// Errors, of the methods that move bytes: peer_lost, which names the other end and says that the
/// link is damaged. From then on nothing is read any more.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Takes the leading bytes of the concatenated `pieces`, as many as fit, without blocking.
  /// `held`: some of what was taken now or before has not left, and leaves with `try_flush` or the
  /// next try_write.
  virtual Moved try_write(std::span<const std::span<const std::byte>> pieces) = 0;

  /// Reads what has come, as much as there is and fits, without blocking. `held`: more than fits
  /// was read ahead, and poll(2) does not show it.
  virtual Moved try_read(std::span<std::byte> into) = 0;

  /// Sends what is held. Returns true when nothing is left of it, or it can never be sent.
  virtual bool try_flush() = 0;

  /// As try_write and try_read said last. Threads: any, at any moment.
  virtual bool has_unsent() const noexcept = 0;
  virtual bool has_read_ahead() const noexcept = 0;

  /// What was taken and the other end's system has not said that it has. Asks the system.
  virtual Bytes unacknowledged() const = 0;

  /// To poll: readable means that try_read may find something, writable that try_flush and
  /// try_write may get on.
  virtual int fd() const noexcept = 0;

  /// Gives the connection away, and with it what is held: the stream is over.
  virtual Fd release() noexcept = 0;
};

/// Everything, until all of it has left, or an error: timeout, peer_lost.
void write_all(Stream& stream, std::span<const std::byte> data, Deadline deadline);
void read_all(Stream& stream, std::span<std::byte> into, Deadline deadline);

/// As for a descriptor, but what is held is sent first, as far as that goes without waiting.
void hang_up(Stream& stream) noexcept;

}  // namespace peal::net
