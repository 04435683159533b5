// A connection as a stream of bytes in each direction. There are three kinds of protection:
//   plain_stream.h      none
//   checked_stream.h    records with checksums
//   encrypted_stream.h  TLS
// handshake.h makes the kind that the ends were configured with. Used by transport for the links
// between ranks, and by store.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/net/socket.h"
#include "peal/system/fd.h"

namespace peal::net {

/// Except in a plain stream, the reader never gets a byte that the other end did not send: damaged
/// data is an error. A stream that ends at any place just ends there (`closed`).
/// Threads: one at a time, unless a method says otherwise.
/// Errors, of the methods that move bytes: peer_lost, which names the other end and says that the
/// link is damaged. After that nothing can be read.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Takes the first bytes of the concatenated `pieces`, as many as fit, without blocking.
  /// `held`: some bytes that were taken now or before are not sent yet. `try_flush` or the next
  /// try_write sends them.
  virtual Moved try_write(std::span<const std::span<const std::byte>> pieces) = 0;

  /// Reads as many bytes as have come and fit, without blocking. `held`: more bytes than fit were
  /// read ahead, and poll(2) does not report them.
  virtual Moved try_read(std::span<std::byte> into) = 0;

  /// Sends the held bytes. Returns true if none is left, or if they can never be sent.
  virtual bool try_flush() = 0;

  /// The `held` of the last try_write and try_read. Threads: any, at any moment.
  virtual bool has_unsent() const noexcept = 0;
  virtual bool has_read_ahead() const noexcept = 0;

  /// The bytes that were taken and that the other end's system has not acknowledged. Cost: a system
  /// call.
  virtual Bytes unacknowledged() const = 0;

  /// For poll: readable means that try_read may find bytes, writable that try_flush and try_write
  /// may send some.
  virtual int fd() const noexcept = 0;

  /// Gives the connection away and drops the held bytes. The stream must not be used after that.
  virtual Fd release() noexcept = 0;
};

// In transfer.cpp, with the same functions for descriptors:

/// Move all bytes, or throw: timeout, peer_lost. write_all returns when no byte is held.
void write_all(Stream& stream, std::span<const std::byte> data, Deadline deadline);
void read_all(Stream& stream, std::span<std::byte> into, Deadline deadline);

/// As for a descriptor. Before that, sends the held bytes as far as possible without waiting.
void hang_up(Stream& stream) noexcept;

}  // namespace peal::net
