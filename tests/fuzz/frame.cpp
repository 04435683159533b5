// Frames from a stream: a FrameReader returns the frames with which the input begins. The first
// byte is the size of the pieces in which the rest arrives.
#include "peal/net/frame.h"

#include <sys/socket.h>

#include "peal/net/plain_stream.h"
#include "peal/net/socket.h"
#include "peal/system/fd.h"

#include "tests/fuzz/fuzz.h"

namespace {

constexpr peal::Bytes kLimit(300);
constexpr std::size_t kMost = 4096;  // no more than a socket takes at once

/// All frames that `reader` can return from the bytes that have arrived, concatenated.
std::string take(peal::net::FrameReader& reader, peal::net::Stream& stream) {
  std::string taken;
  while (const auto body = reader.advance(stream)) {
    peal::fuzz::require(peal::Bytes(static_cast<std::int64_t>(body->size())) <= kLimit,
                        "the limit");
    taken += peal::net::frame_of(*body);
  }
  return taken;
}

}  // namespace

void peal::fuzz::check(std::string_view input) {
  if (input.empty() || input.size() > kMost) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(input[0]);
  const std::string_view stream = input.substr(1);
  net::SocketPair pair = net::make_socket_pair();
  net::PlainStream ours(std::move(pair.a));
  const Fd theirs = std::move(pair.b);
  net::FrameReader reader(kLimit, "input");
  std::string taken;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    const std::string_view part = stream.substr(at, piece);
    require(::send(theirs.get(), part.data(), part.size(), 0) == static_cast<ssize_t>(part.size()),
            "send");
    const auto frames = unless_refused(ErrorKind::kMismatch, [&] { return take(reader, ours); });
    if (!frames) return;
    taken += *frames;
  }
  require(stream.starts_with(taken), "frames are the stream's beginning");
}
