// Moves bytes and descriptors over connections and streams.
#include <errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/net/stream.h"

namespace peal::net {
namespace {

constexpr std::size_t kMaxPieces = 64;
constexpr std::size_t kMaxFds = 253;  // the kernel's SCM_MAX_FD

/// Interprets the result and errno of a system call that moves bytes.
Moved moved(ssize_t count, int error_number) {
  if (count >= 0) return {Bytes(count), false};
  switch (error_number) {
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
      return {};
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
      return {0_B, true};
  }
  throw system_error("cannot move bytes over a socket", error_number);
}

/// A direction: the event to wait for, and its name in messages.
struct Direction {
  short events = 0;
  std::string_view doing;
};
constexpr Direction kSend{POLLOUT, "sending to"};
constexpr Direction kReceive{POLLIN, "receiving from"};

void wait_for(int fd, Direction direction, Deadline deadline) {
  pollfd entry{fd, direction.events, 0};
  if (poll_until({&entry, 1}, deadline)) return;
  throw Error(ErrorKind::kTimeout,
              fmt::format("{} {} took too long", direction.doing, peer_name(fd)));
}

/// Calls `try_move` with the number of bytes that have moved, until all have.
template <class TryMove>
void move_all(
    int fd, Direction direction, std::size_t all, Deadline deadline, const TryMove& try_move) {
  std::size_t done = 0;
  while (done < all) {
    const Moved moved = try_move(done);
    if (moved.closed) {
      throw Error(ErrorKind::kPeerLost,
                  fmt::format("{} {}: the connection was closed after {} of {} bytes",
                              direction.doing,
                              peer_name(fd),
                              done,
                              all));
    }
    done += static_cast<std::size_t>(moved.bytes.value);
    if (moved.bytes == 0_B) wait_for(fd, direction, deadline);
  }
}

/// The buffer for the control message that carries descriptors.
struct alignas(cmsghdr) Control {
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> bytes{};
};

std::vector<Fd> take_fds(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Moved try_write(int fd, std::span<const std::span<const std::byte>> pieces) {
  std::array<iovec, kMaxPieces> vectors;
  const std::size_t count = std::min(pieces.size(), kMaxPieces);
  for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const ssize_t result = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return moved(result, errno);
}

Moved try_read(int fd, std::span<std::byte> into) {
  if (into.empty()) return {};  // recv would return 0, which looks like the end of the stream
  const ssize_t result = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  if (result == 0) return {0_B, true};
  return moved(result, errno);
}

void write_all(int fd, std::span<const std::byte> data, Deadline deadline) {
  move_all(fd, kSend, data.size(), deadline, [&](std::size_t done) {
    return try_write(fd, std::array{data.subspan(done)});
  });
}

void read_all(int fd, std::span<std::byte> into, Deadline deadline) {
  move_all(fd, kReceive, into.size(), deadline, [&](std::size_t done) {
    return try_read(fd, into.subspan(done));
  });
}

void write_all(Stream& stream, std::span<const std::byte> data, Deadline deadline) {
  move_all(stream.fd(), kSend, data.size(), deadline, [&](std::size_t done) {
    return stream.try_write(std::array{data.subspan(done)});
  });
  while (!stream.try_flush()) wait_for(stream.fd(), kSend, deadline);
}

void read_all(Stream& stream, std::span<std::byte> into, Deadline deadline) {
  move_all(stream.fd(), kReceive, into.size(), deadline, [&](std::size_t done) {
    return stream.try_read(into.subspan(done));
  });
}

void hang_up(Stream& stream) noexcept {
  try {
    stream.try_flush();
  } catch (const std::exception&) {  // the stream is broken; only closing remains
  }
  hang_up(stream.release());
}

void send_fds(int fd, std::span<const int> fds, Deadline deadline) {
  if (fds.empty() || fds.size() > kMaxFds) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "cannot send {} descriptors in one message: send 1 to {}", fds.size(), kMaxFds));
  }
  std::byte payload{0};
  iovec vector{&payload, 1};
  Control control;
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  move_all(fd, {POLLOUT, "sending descriptors to"}, 1, deadline, [&](std::size_t) {
    const ssize_t count = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    return moved(count, errno);
  });
}

std::vector<Fd> receive_fds(int fd, std::size_t count, Deadline deadline) {
  std::byte payload{0};
  iovec vector{&payload, 1};
  Control control;
  msghdr message{};
  move_all(fd, {POLLIN, "receiving descriptors from"}, 1, deadline, [&](std::size_t) {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t received = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    return received == 0 ? Moved{0_B, true} : moved(received, errno);
  });
  std::vector<Fd> fds = take_fds(message);
  if (message.msg_flags & MSG_CTRUNC) {
    throw Error(ErrorKind::kResource,
                fmt::format("of {} descriptors only {} could be received: raise the limit of open "
                            "files (ulimit -n)",
                            count,
                            fds.size()));
  }
  if (fds.size() != count) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{} descriptors came from {}, but {} were expected", fds.size(), peer_name(fd), count));
  }
  return fds;
}

}  // namespace peal::net
