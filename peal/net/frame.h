// Messages on a stream: a body behind its length. Used by the store's client and server and by
// whoever else speaks in messages over a socket.
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

/// Assembles one frame after the other from a stream, without blocking. Never takes a byte beyond
/// the frame, and never reserves memory for more than has come.
class FrameReader {
 public:
  /// `what` is the message's name in errors, as in "store request".
  FrameReader(Bytes limit, std::string what) : limit_(limit), what_(std::move(what)) {}

  /// Reads what is there; returns the body once it is whole.
  /// Errors: peer_lost at the end of the stream, mismatch for a length beyond the limit.
  std::optional<std::string> advance(Stream& stream);

  /// Whether the stream has ended, and `advance` threw for that and not for damage.
  bool has_ended() const { return ended_; }

 private:
  bool fill(Stream& stream, std::size_t size);

  static constexpr std::size_t kHeader = 4;

  Bytes limit_;
  std::string what_;
  bool ended_ = false;
  std::string in_;  // the header and then the body, as far as they have come
};

}  // namespace peal::net
