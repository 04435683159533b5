// For tests: two connected sockets.
#pragma once

#include <sys/socket.h>

#include <cerrno>

#include "peal/base/error.h"
#include "peal/system/fd.h"

namespace peal::net {

struct SocketPair {
  Fd a;
  Fd b;
};

/// Both sockets are non-blocking.
inline SocketPair make_socket_pair() {
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    throw system_error("socketpair", errno);
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace peal::net
