// Accepts connections at a group's listeners, and rejects every connection that does not prove the
// job's secret. Used by arrivals.cpp while a group connects, and by linker.cpp afterwards.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/accept_limiter.h"
#include "peal/net/address.h"
#include "peal/net/handshake.h"
#include "peal/system/fd.h"
#include "peal/transport/link/dial.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// Threads: one.
class Acceptor {
 public:
  struct Owner {
    /// Decides on the link of a rank that has proved the secret.
    std::function<Answer(const LinkKey&)> decide;
    /// Receives a link for which `decide` has returned kTaken.
    std::function<void(const LinkKey&, std::unique_ptr<net::Stream>)> take;
  };

  /// Borrows `plan`. `expected`: how many links may come at once. The expected ranks may be many
  /// and slow, so the limit of half-open connections is higher by this number.
  Acceptor(const LinkPlan& plan, std::size_t expected, Owner owner);

  /// Appends what poll(2) must watch before the next `advance`.
  void add_entries(std::vector<pollfd>& entries) const;
  /// When to call `advance` if nothing happens.
  TimePoint due() const;
  /// Accepts connections and continues their handshakes, without blocking.
  void advance();

 private:
  /// A connection that is not a link yet.
  struct Incoming {
    net::Address from;
    net::Handshake handshake;
    TimePoint since;
    std::optional<net::Welcome> welcome;  // once the handshake is over

    int fd() const { return welcome ? welcome->stream->fd() : handshake.fd(); }
  };

  std::size_t count_half_open() const;
  bool may_accept() const;
  Timeout time_for(const Incoming& pending, std::size_t half_open) const;
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
  /// Answers a rank once the rank says which link it asks for.
  bool take(net::Welcome& pending);

  const LinkPlan& plan_;
  const Owner owner_;
  const std::string listener_;  // for messages
  net::AcceptLimiter accept_limiter_;
  std::list<Incoming> pending_;
};

}  // namespace peal::transport
