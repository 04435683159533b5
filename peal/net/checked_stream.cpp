#include "peal/net/checked_stream.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/tcp_options.h"

namespace peal::net {

CheckedStream::CheckedStream(Fd fd) : fd_(std::move(fd)) {}

Moved CheckedStream::try_write(std::span<const std::span<const std::byte>> pieces) {
  Bytes taken;
  Pieces left(pieces);
  while (try_flush() && !closed_ && !left.empty()) {
    unsent_ = writer_.seal(left);
    taken += Bytes(static_cast<std::int64_t>(unsent_.size())) - kRecordHead;
  }
  if (closed_) return {0_B, true};
  return {taken, false, !unsent_.empty()};
}

bool CheckedStream::try_flush() {
  while (!unsent_.empty()) {
    const std::array pieces = {unsent_};
    const Moved moved = net::try_write(fd_.get(), pieces);
    closed_ = moved.closed;
    if (moved.bytes == 0_B) break;
    unsent_ = unsent_.subspan(static_cast<std::size_t>(moved.bytes.value));
  }
  if (closed_) unsent_ = {};
  if (has_unsent_ != !unsent_.empty()) has_unsent_ = !unsent_.empty();
  return unsent_.empty();
}

/// Reads from the socket at most once. The next call reads what has come meanwhile.
Moved CheckedStream::try_read(std::span<std::byte> into) {
  std::size_t taken = take(into);
  bool closed = false;
  if (taken == 0 && !into.empty()) {
    const Moved moved = net::try_read(fd_.get(), reader_.room());
    reader_.has_come(static_cast<std::size_t>(moved.bytes.value));
    closed = moved.closed;
    taken = take(into);
  }
  const bool ahead = reader_.has_some();
  if (has_read_ahead_ != ahead) has_read_ahead_ = ahead;
  return {Bytes(static_cast<std::int64_t>(taken)), closed, ahead};
}

std::size_t CheckedStream::take(std::span<std::byte> into) {
  try {
    return reader_.take(into);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("the link to {} is damaged: {}", peer_name(fd()), error.message()));
  }
}

Bytes CheckedStream::unacknowledged() const {
  return net::unacknowledged(fd()) + Bytes(static_cast<std::int64_t>(unsent_.size()));
}

}  // namespace peal::net
