// Two streams with a wire between them that the test controls, and short ways to write and read.
// For the tests of all kinds of streams.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/base/testing/soon.h"
#include "peal/net/encrypted_stream.h"
#include "peal/net/socket.h"
#include "peal/net/stream.h"

namespace peal::net {

/// Of both ends of an encrypted stream.
inline const std::string kKey(32, 'k');

/// Moves all bytes that have come from one descriptor to another.
inline void relay(int from, int to) {
  std::array<std::byte, 4096> bytes;
  while (true) {
    const Moved moved = try_read(from, bytes);
    if (moved.bytes == 0_B) return;
    write_all(to, std::span(bytes).first(static_cast<std::size_t>(moved.bytes.value)), soon());
  }
}

using StreamPtr = std::unique_ptr<Stream>;

/// Makes a stream of one kind.
using MakeStream = std::function<StreamPtr(Fd, Role)>;

inline StreamPtr make_encrypted(Fd fd, Role role) {
  constexpr std::uint64_t kFew = 5;  // so that keys change in every test
  return std::make_unique<EncryptedStream>(std::move(fd), role, kKey, kFew);
}

/// Two streams with a wire between them that the test controls.
struct Wire {
  StreamPtr sender;
  Fd from_sender;
  Fd to_receiver;
  StreamPtr receiver;

  /// Takes the bytes that the sender has put on the wire.
  std::string take() const {
    std::string taken;
    std::array<char, 4096> bytes;
    while (true) {
      const Moved moved = try_read(from_sender.get(), std::as_writable_bytes(std::span(bytes)));
      if (moved.bytes == 0_B) return taken;
      taken.append(bytes.data(), static_cast<std::size_t>(moved.bytes.value));
    }
  }

  void put(std::string_view bytes) const { write_all(to_receiver.get(), bytes_of(bytes), soon()); }
};

inline Wire make_wire(const MakeStream& make) {
  SocketPair left = make_socket_pair();
  SocketPair right = make_socket_pair();
  Wire wire{make(std::move(left.a), Role::kConnector),
            std::move(left.b),
            std::move(right.a),
            make(std::move(right.b), Role::kAcceptor)};
  auto* const connector = dynamic_cast<EncryptedStream*>(wire.sender.get());
  auto* const acceptor = dynamic_cast<EncryptedStream*>(wire.receiver.get());
  for (bool done = connector == nullptr; !done;) {
    const bool one = connector->try_handshake();
    relay(wire.from_sender.get(), wire.to_receiver.get());
    const bool other = acceptor->try_handshake();
    relay(wire.to_receiver.get(), wire.from_sender.get());
    done = one && other;
  }
  return wire;
}

inline Moved write(Stream& stream, std::string_view text) {
  const std::array pieces = {bytes_of(text)};
  return stream.try_write(pieces);
}

/// The bytes that can be read now, and how the reading ended.
struct ReadOutcome {
  std::string text;
  bool closed = false;
  std::optional<Error> error;
};

inline ReadOutcome read_all_there_is(Stream& stream, std::size_t step = 4096) {
  ReadOutcome outcome;
  std::string bytes(step, '\0');
  try {
    while (true) {
      const Moved moved = stream.try_read(std::as_writable_bytes(std::span(bytes)));
      outcome.text += bytes.substr(0, static_cast<std::size_t>(moved.bytes.value));
      outcome.closed = moved.closed;
      if (moved.closed) return outcome;
      pollfd entry{stream.fd(), POLLIN, 0};
      const bool more = stream.has_read_ahead() || poll_until({&entry, 1}, Deadline(Clock::now()));
      if (moved.bytes == 0_B && !more) return outcome;
    }
  } catch (const Error& error) {
    outcome.error = error;
    return outcome;
  }
}

/// Whether poll(2) reports that the stream is readable.
inline bool is_readable(const Stream& stream) {
  pollfd entry{stream.fd(), POLLIN, 0};
  return poll_until({&entry, 1}, Deadline(Clock::now()));
}

}  // namespace peal::net
