#include "peal/net/frame.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::net {

std::string frame_of(std::string_view body) {
  ByteWriter writer;
  writer.put_text(body);
  return std::move(writer).take();
}

std::optional<std::string> FrameReader::advance(Stream& stream) {
  if (!fill(stream, kHeader)) return std::nullopt;
  const Bytes size(ByteReader(in_, what_).get_u32());
  if (size > limit_) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("malformed {} from {}: {} bytes where at most {} are allowed",
                            what_,
                            peer_name(stream.fd()),
                            size.value,
                            limit_.value));
  }
  if (!fill(stream, kHeader + static_cast<std::size_t>(size.value))) return std::nullopt;
  std::string body = in_.substr(kHeader);
  in_.clear();
  return body;
}

/// Reads until `in_` has `size` bytes. Returns false if they have not all come yet.
bool FrameReader::fill(Stream& stream, std::size_t size) {
  constexpr std::size_t kChunk = 64 << 10;
  while (in_.size() < size) {
    const std::size_t before = in_.size();
    in_.resize(std::min(size, before + kChunk));
    const Moved moved = stream.try_read(std::as_writable_bytes(std::span(in_).subspan(before)));
    in_.resize(before + static_cast<std::size_t>(moved.bytes.value));
    if (moved.closed) {
      ended_ = true;
      throw Error(
          ErrorKind::kPeerLost,
          fmt::format(
              "{} closed the connection before the end of a {}", peer_name(stream.fd()), what_));
    }
    if (moved.bytes == 0_B) return false;
  }
  return true;
}

}  // namespace peal::net
