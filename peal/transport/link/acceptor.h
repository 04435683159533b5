// Accepts the connections of a group's later ranks, and rejects every connection that does not
// prove the job's secret. Used by links.cpp.
#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/accept_limiter.h"
#include "peal/net/address.h"
#include "peal/net/handshake.h"
#include "peal/system/fd.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// Threads: one.
class Acceptor {
 public:
  /// Adds connections to `links`. Borrows both.
  Acceptor(const LinkPlan& plan, Links& links);

  /// Returns when all expected connections are made.
  void run(Deadline deadline);

 private:
  /// A connection whose rank is not known yet.
  struct Incoming {
    net::Address from;
    net::Handshake handshake;
    TimePoint since;
    std::optional<net::Welcome> welcome;  // once the handshake is over

    int fd() const { return welcome ? welcome->stream->fd() : handshake.fd(); }
  };

  std::size_t count_half_open() const;
  bool may_accept() const;
  std::span<pollfd> entries();
  /// Accepts connections from each listener in turn, so that many connections at one listener leave
  /// room for those at the others. Limited in number, because connections may come faster than they
  /// are closed.
  void welcome();
  /// Returns whether a connection was waiting.
  bool welcome_from(int listener);
  void take_in(Fd fd, TimePoint now);
  /// Advances the handshake of a pending connection. `half_open`: how many pending connections are
  /// half-open. Returns whether this one is finished: accepted or dropped.
  bool advance(Incoming& pending, std::size_t half_open);
  void drop(const Incoming& pending, const Error& error);
  /// Records the connection of a rank once the rank says what it is for. A rank that dials again
  /// has lost its earlier connection: the last connection counts.
  bool take(net::Welcome& pending);
  /// Also true for a link that was taken before: see `take`.
  bool expects(const LinkKey& key) const;
  /// Throws if a missing rank has ended. A rank that still has to dial keeps its listener open
  /// until all later ranks have connected to it. So a rank without a listener has ended.
  void find_ended_processes();
  Error absence() const;

  const LinkPlan& plan_;
  Links& links_;
  std::string listener_;  // for messages
  net::AcceptLimiter accept_limiter_;
  std::set<LinkKey> missing_;
  std::list<Incoming> pending_;
  std::vector<pollfd> entries_;
  TimePoint looked_ = Clock::now();
  Rank last_looked_for_ = -1;
};

}  // namespace peal::transport
