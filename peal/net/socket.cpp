// Makes connections; transfer.cpp moves bytes over them.
#include "peal/net/socket.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/bracketed.h"
#include "peal/base/error.h"
#include "peal/system/withheld.h"

namespace peal::net {
namespace {

using std::chrono::milliseconds;

std::string describe(int error_number) { return std::generic_category().message(error_number); }

void set_option(int fd, int level, int name, int value) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) {
    throw system_error("setsockopt", errno);
  }
}

std::string host_of(const Address& address) {
  const std::string text = address.to_string();
  return text.substr(0, text.rfind(':'));
}

Error cannot_listen(const Address& address, int error_number) {
  if (error_number == EADDRINUSE && address.is_unix()) {
    return Error(
        ErrorKind::kResource,
        fmt::format("{} is already in use; stop the program that holds it", address.to_string()));
  }
  if (error_number == EADDRINUSE) {
    return Error(ErrorKind::kResource,
                 fmt::format("port {} is already in use on {}; choose another MASTER_PORT or stop "
                             "the program that holds it",
                             address.port(),
                             host_of(address)));
  }
  if (error_number == EADDRNOTAVAIL) {
    return Error(ErrorKind::kResource,
                 fmt::format("cannot listen on {}: {} is not an address of this machine",
                             address.to_string(),
                             host_of(address)));
  }
  return system_error(fmt::format("cannot listen on {}", address.to_string()), error_number);
}

Error cannot_connect(const Address& address, int error_number) {
  return Error(
      ErrorKind::kPeerLost,
      fmt::format("cannot connect to {}: {}", address.to_string(), describe(error_number)));
}

Fd open_socket(const Address& address) {
  const int family = address.raw()->sa_family;
  constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  return withheld_from_children(Fd(::socket(family, kType, 0)));
}

template <int (*Get)(int, sockaddr*, socklen_t*)>
Address address_by(int fd, const char* what) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (Get(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    if (errno != ENOTCONN) throw system_error(what, errno);
    throw Error(ErrorKind::kPeerLost, "the other end has reset the connection");
  }
  return Address(reinterpret_cast<const sockaddr*>(&storage), size);
}

/// 0, or the reason why a new connection is not usable. If a connection goes to a free port of this
/// machine, the system may choose the same port as its source. Then the connection leads to itself,
/// and counts as refused.
int flaw(int fd) {
  try {
    const Address local = local_address(fd);
    return !local.is_unix() && local == peer_address(fd) ? ECONNREFUSED : 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
    return ECONNRESET;
  }
}

/// 0, EINPROGRESS, or the error number of a connection that has failed.
int outcome(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  if (!poll_until({&entry, 1}, Deadline(Clock::now()))) return EINPROGRESS;
  int error_number = 0;
  socklen_t size = sizeof error_number;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) return errno;
  return error_number;
}

}  // namespace

Fd reserve(const Address& address) {
  Fd fd = open_socket(address);
  if (!fd) throw cannot_listen(address, errno);
  const int family = address.raw()->sa_family;
  if (family != AF_UNIX) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(fd.get(), address.raw(), address.size()) != 0) throw cannot_listen(address, errno);
  return fd;
}

SocketPair make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw system_error("cannot make a pair of sockets", errno);
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

Fd listen_on(const Address& address) {
  Fd fd = reserve(address);
  if (::listen(fd.get(), SOMAXCONN) != 0) throw cannot_listen(address, errno);
  return fd;
}

Address local_address(int fd) { return address_by<::getsockname>(fd, "getsockname"); }

Address peer_address(int fd) { return address_by<::getpeername>(fd, "getpeername"); }

std::string own_address_towards(const std::string& host) {
  try {
    const Address to = Address::parse(bracketed(host) + ":9");
    // A datagram socket that connects chooses its address, and sends nothing.
    const Fd fd(::socket(to.raw()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd || ::connect(fd.get(), to.raw(), to.size()) != 0) return "";
    const std::string own = host_of(local_address(fd.get()));
    return own.starts_with('[') ? own.substr(1, own.size() - 2) : own;
  } catch (const Error&) {
    return "";
  }
}

std::string peer_name(int fd) {
  try {
    const Address address = peer_address(fd);
    return address.is_unix() ? "a process of this machine" : address.to_string();
  } catch (const Error&) {
    return "a peer that is gone";
  }
}

Connecting::Connecting(const Address& address) : address_(address), fd_(open_socket(address)) {
  if (fd_) return;
  if (errno == EAFNOSUPPORT) throw cannot_connect(address, errno);
  throw system_error(fmt::format("cannot make a socket for {}", address.to_string()), errno);
}

std::optional<Fd> Connecting::advance() {
  int error_number = 0;
  if (has_begun_) {
    error_number = outcome(fd_.get());
  } else if (::connect(fd_.get(), address_.raw(), address_.size()) != 0) {
    if (errno == EAGAIN) return std::nullopt;  // a unix listener whose queue is full
    error_number = errno == EINTR ? EINPROGRESS : errno;
  }
  has_begun_ = true;
  if (error_number == EINPROGRESS) return std::nullopt;
  if (error_number == 0) error_number = flaw(fd_.get());
  if (error_number != 0) throw cannot_connect(address_, error_number);
  return std::move(fd_);
}

Fd connect_to(const Address& address, Deadline deadline, const Interrupt& interrupt) {
  Connecting connecting(address);
  while (true) {
    if (auto fd = connecting.advance()) return std::move(*fd);
    pollfd entry{connecting.fd(), POLLOUT, 0};
    const bool is_full = entry.fd < 0;
    if (is_full) let_interrupt(interrupt);
    const bool is_ready =
        poll_until({&entry, 1}, is_full ? deadline.within(milliseconds(1)) : deadline, interrupt);
    if (!is_ready && deadline.passed()) {
      throw Error(ErrorKind::kTimeout,
                  fmt::format("no answer from {} in time", address.to_string()));
    }
  }
}

Fd connect_patiently(const std::vector<Address>& addresses,
                     Deadline deadline,
                     const Interrupt& interrupt) {
  milliseconds pause(5);
  // Grows, so that neither a dead address nor a slow one blocks.
  milliseconds attempt(1000);
  constexpr milliseconds kLongestAttempt(30'000);
  while (true) {
    std::string failure = "no address to try";
    for (const Address& address : addresses) {
      try {
        return connect_to(address, deadline.within(attempt), interrupt);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kPeerLost && error.kind() != ErrorKind::kTimeout) throw;
        failure = error.message();
      }
    }
    if (addresses.empty() || deadline.passed()) {
      std::vector<std::string> names;
      for (const Address& address : addresses) names.push_back(address.to_string());
      throw Error(
          ErrorKind::kPeerLost,
          fmt::format("no process could be reached at {} ({})", fmt::join(names, ", "), failure));
    }
    let_interrupt(interrupt);
    std::this_thread::sleep_until(deadline.within(pause).at());
    pause = std::min(pause * 3 / 2, milliseconds(250));
    attempt = std::min(attempt * 2, kLongestAttempt);
  }
}

std::optional<Fd> accept_from(int listener, Deadline deadline) {
  while (true) {
    constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    Fd fd = withheld_from_children(Fd(::accept4(listener, nullptr, nullptr, kFlags)));
    if (fd) return fd;
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
    if (errno != EAGAIN) throw system_error("cannot accept a connection", errno);
    pollfd entry{listener, POLLIN, 0};
    if (!poll_until({&entry, 1}, deadline)) return std::nullopt;
  }
}

bool is_closed(int fd) {
  pollfd entry{fd, POLLRDHUP, 0};
  while (::poll(&entry, 1, 0) < 0) {
    if (errno != EINTR) throw system_error("poll", errno);
  }
  return entry.revents != 0;
}

void end_writing(int fd) noexcept { ::shutdown(fd, SHUT_WR); }

void cut_off(int fd) noexcept { ::shutdown(fd, SHUT_RDWR); }

void hang_up(Fd fd) noexcept {
  if (!fd) return;
  end_writing(fd.get());
  // At most as much as a socket can hold, since the other end may write forever.
  std::array<std::byte, 64 << 10> unread;
  for (int i = 0; i < 256; ++i) {
    if (::recv(fd.get(), unread.data(), unread.size(), MSG_DONTWAIT) <= 0) break;
  }
}

Neighbour neighbour_at(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    throw system_error("cannot read the user at the other end of a unix socket", errno);
  }
  return {credentials.uid, credentials.pid};
}

bool poll_until(std::span<pollfd> entries, Deadline deadline) {
  constexpr Timeout kLongest = std::chrono::hours(1);  // poll's timeout is an int
  while (true) {
    const Timeout left = std::min(deadline.left(), kLongest);
    const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw system_error("poll", errno);
    if (deadline.passed()) return false;
  }
}

bool poll_until(std::span<pollfd> entries, Deadline deadline, const Interrupt& interrupt) {
  return wait_or_interrupt(
      deadline, interrupt, [&](Deadline slice) { return poll_until(entries, slice); });
}

void set_no_delay(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

}  // namespace peal::net
