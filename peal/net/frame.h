// Messages on a stream: each message is a length and a body. Used by the store's client and server,
// and by other code that sends messages over a socket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/net/stream.h"

namespace peal::net {

/// A little-endian u32 length and the body. Throws Error(usage) beyond 4 GiB.
std::string frame_of(std::string_view body);

/// Reads frames one by one from a stream, without blocking. Never reads a byte beyond the frame. A
/// large length reserves no memory: the buffer grows with the bytes that come. Threads: one at a
/// time.
class FrameReader {
 public:
  /// `what` is the message's name in errors, as in "store request".
  FrameReader(Bytes limit, std::string what) : limit_(limit), what_(std::move(what)) {}

  /// Reads the bytes that have come. Returns the body once it is complete.
  /// Errors: peer_lost at the end of the stream, mismatch for a length beyond the limit.
  std::optional<std::string> advance(Stream& stream);

  /// Whether `advance` threw because the stream has ended, and not because of damage.
  bool has_ended() const { return ended_; }

 private:
  bool fill(Stream& stream, std::size_t size);

  static constexpr std::size_t kHeader = 4;

  Bytes limit_;
  std::string what_;
  bool ended_ = false;
  std::string in_;  // the received part of the header and the body
};

}  // namespace peal::net
