#include "peal/transport/links.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/net/strangers.h"
#include "peal/transport/dialler.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How often those who have not come are looked for, and how long a look may keep the others
/// waiting.
constexpr milliseconds kLookEvery{200};
constexpr milliseconds kLookFor{100};

/// A connection whose rank is not known yet.
struct Guest {
  net::Address from;
  net::Handshake handshake;
  TimePoint since;
  std::optional<net::Welcome> welcome;  // once it is over

  int fd() const { return welcome ? welcome->stream->fd() : handshake.fd(); }
};

/// The ranks that are expected, who may be many and slow, are no crowd.
net::StrangerLimits limits_for(const LinkPlan& plan) {
  net::StrangerLimits limits;
  for (const auto& [rank, peer] : plan.peers) {
    if (rank > plan.self) limits.half_open += peer.kinds.size();
  }
  return limits;
}

/// Whether the peer has closed its link to this rank or, without a link, does not listen any more.
bool has_left(const LinkPlan& plan, const Links& links, Rank peer, Deadline deadline) {
  for (const auto& [key, stream] : links) {
    if (key.peer == peer) return net::is_closed(stream->fd());
  }
  return is_gone(plan.peers.at(peer), deadline);
}

/// The loss of the peer `lost`, with the other peers that have left: `lost` may have ended only
/// because one of them did. Tries each peer once. A refusal takes a round trip at most; the time
/// for all peers is bounded for those that give no sign.
Error with_others_that_left(const Error& loss,
                            Rank lost,
                            const LinkPlan& plan,
                            const Links& links) {
  constexpr std::size_t kShown = 16;
  constexpr milliseconds kForEach{20};
  const Deadline until = Deadline::after(milliseconds(500));
  std::vector<std::string> others;
  std::vector<Rank> more;
  for (const auto& [rank, peer] : plan.peers) {
    if (rank == lost || !has_left(plan, links, rank, until.within(kForEach))) continue;
    if (others.size() < kShown) {
      others.push_back(peer.name);
    } else {
      more.push_back(rank);
    }
  }
  if (others.empty()) return loss;
  return Error(loss.kind(),
               fmt::format("{}; these ranks have left too: {}{}",
                           loss.message(),
                           fmt::join(others, ", "),
                           more.empty() ? "" : fmt::format(", and {}", fmt::join(more, ", "))));
}

class Doorkeeper {
 public:
  Doorkeeper(const LinkPlan& plan, Links& links)
      : plan_(plan),
        links_(links),
        door_(fmt::format("rank {} of group {}", plan.self, plan.group)),
        strangers_(limits_for(plan), door_, plan.report) {
    for (const auto& [rank, peer] : plan.peers) {
      if (rank < plan.self) continue;
      for (const LinkKind kind : peer.kinds) missing_.insert({rank, kind});
    }
  }

  /// Returns when all who were expected are there.
  void run(Deadline deadline) {
    while (!missing_.empty()) {
      if (deadline.passed()) throw absence();
      net::poll_until(entries(), deadline.within(kLookEvery));
      welcome();
      const std::size_t crowd = half_open();
      std::erase_if(guests_, [&](Guest& guest) { return attend(guest, crowd); });
      look_for_the_dead();
    }
  }

 private:
  std::size_t half_open() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(guests_, [](const Guest& guest) { return !guest.welcome; }));
  }

  bool lets_in() const { return strangers_.lets_in(half_open(), Clock::now()); }

  std::span<pollfd> entries() {
    entries_.clear();
    const bool accepts = lets_in();
    for (const int listener : plan_.listeners) {
      entries_.push_back({accepts ? listener : -1, POLLIN, 0});  // poll ignores -1
    }
    for (const Guest& guest : guests_) {
      entries_.push_back(
          {guest.fd(), guest.welcome ? short{POLLIN} : guest.handshake.interest(), 0});
    }
    return entries_;
  }

  /// One from each listener in turn, so that a crowd at one of them leaves room for the others'. So
  /// many at most, since connections may come faster than they are closed.
  void welcome() {
    constexpr int kMost = 256;
    bool some = true;
    for (int i = 0; i < kMost && some; ++i) {
      some = false;
      for (const int listener : plan_.listeners) some |= lets_in() && welcome_from(listener);
    }
  }

  /// Returns whether a connection was there.
  bool welcome_from(int listener) {
    const TimePoint now = Clock::now();
    std::optional<Fd> fd;
    try {
      fd = net::accept_from(listener, Deadline(now));
    } catch (const Error&) {
      strangers_.could_not_let_in(now);
    }
    if (fd) take_in(std::move(*fd), now);
    return fd.has_value();
  }

  void take_in(Fd fd, TimePoint now) {
    net::Address from;
    try {
      net::check_neighbour(fd.get());
      from = net::peer_address(fd.get());
      set_up(plan_, fd.get(), from);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kPeerLost) strangers_.turned_away(error.message(), now);
      return;  // else it has hung up
    }
    if (strangers_.is_paused(from, now)) return;
    guests_.push_back({from,
                       net::Handshake(std::move(fd),
                                      net::Role::kAcceptor,
                                      context_of(plan_, plan_.self),
                                      net::Hello{plan_.self}),
                       now,
                       std::nullopt});
  }

  /// Goes on with a guest, who is one of a crowd of so many; returns whether it is done, well or
  /// not.
  bool attend(Guest& guest, std::size_t crowd) {
    try {
      if (!guest.welcome) guest.welcome = guest.handshake.advance();
      if (guest.welcome && take(*guest.welcome)) return true;
      const Timeout patience = strangers_.patience(guest.welcome ? 0 : crowd);
      if (Clock::now() < guest.since + patience) return false;
      if (!guest.welcome) throw guest.handshake.too_slow();
      throw Error(ErrorKind::kTimeout,
                  fmt::format("{} does not say what it is for", net::peer_name(guest.fd())));
    } catch (const Error& error) {
      drop(guest, error);
      return true;
    }
  }

  void drop(const Guest& guest, const Error& error) {
    if (guest.welcome) {
      plan_.report(Severity::kWarning,
                   fmt::format("dropped a connection to {}: {}", door_, error.message()));
    } else if (error.kind() != ErrorKind::kPeerLost || guest.handshake.has_proof()) {
      strangers_.dropped(guest.from, error.message(), Clock::now());
    }  // else it hung up: it looked if this rank lives (look_for_the_dead), or dials again
  }

  /// Enters the connection of a rank into the books once it says what it is for. A rank that
  /// dialled again does not have its earlier connection any more: the last one counts.
  bool take(net::Welcome& guest) {
    std::array<std::byte, 1> request{};
    const net::Moved moved = guest.stream->try_read(request);
    if (moved.closed) return true;
    if (moved.bytes == 0_B) return false;
    const LinkKey key{guest.other.rank, static_cast<LinkKind>(request[0])};
    const bool expected = expects(key);
    const std::array answer = {expected ? kTaken : kUnexpected};
    const std::array<std::span<const std::byte>, 1> pieces = {answer};
    if (guest.stream->try_write(pieces).bytes == 0_B) return true;
    if (!expected) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format("a link of rank {} came that this rank does not expect: the ranks do not "
                      "agree on how they reach each other; give each process a rank of its own",
                      key.peer));
    }
    links_[key] = std::move(guest.stream);
    missing_.erase(key);
    return true;
  }

  /// Also a second time: see `take`.
  bool expects(const LinkKey& key) const {
    const auto peer = plan_.peers.find(key.peer);
    if (key.peer <= plan_.self || peer == plan_.peers.end()) return false;
    return std::ranges::find(peer->second.kinds, key.kind) != peer->second.kinds.end();
  }

  /// Ranks that are still to dial hold their listeners open until all have come to them, this one
  /// included: where nobody listens, nobody will dial.
  void look_for_the_dead() {
    const TimePoint now = Clock::now();
    if (missing_.empty() || now - looked_ < kLookEvery) return;
    const Deadline until(now + kLookFor);
    const std::set<LinkKey> missing = missing_;
    for (const LinkKey& key : missing) {
      if (key.peer <= last_looked_for_) continue;
      if (until.passed()) break;
      last_looked_for_ = key.peer;
      const LinkPlan::Peer& peer = plan_.peers.at(key.peer);
      if (!is_gone(peer, until)) continue;
      const Error loss(ErrorKind::kPeerLost,
                       fmt::format("{} ended before the group was connected", peer.name));
      throw with_others_that_left(loss, key.peer, plan_, links_);
    }
    if (last_looked_for_ >= missing.rbegin()->peer) last_looked_for_ = plan_.self;
    looked_ = Clock::now();
  }

  Error absence() const {
    std::vector<std::string> names;
    for (const LinkKey& key : missing_) {
      const std::string& name = plan_.peers.at(key.peer).name;
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return Error(
        ErrorKind::kTimeout,
        fmt::format("did not connect to rank {} in time: {}; look what they do, or whether "
                    "a firewall lies between",
                    plan_.self,
                    fmt::join(names, ", ")));
  }

  const LinkPlan& plan_;
  Links& links_;
  std::string door_;  // for messages
  net::Strangers strangers_;
  std::set<LinkKey> missing_;
  std::list<Guest> guests_;
  std::vector<pollfd> entries_;
  TimePoint looked_ = Clock::now();
  Rank last_looked_for_ = -1;
};

}  // namespace

std::map<Rank, std::unique_ptr<net::Stream>> take(Links& links, LinkKind kind) {
  std::map<Rank, std::unique_ptr<net::Stream>> taken;
  for (auto& [key, stream] : links) {
    if (key.kind == kind) taken[key.peer] = std::move(stream);
  }
  return taken;
}

void make_links(const LinkPlan& plan, Links& links, Deadline deadline) {
  Dialler dialler(plan);
  for (const auto& [rank, peer] : plan.peers) {
    if (rank >= plan.self) break;
    for (const LinkKind kind : peer.kinds) {
      try {
        links[{rank, kind}] = dialler.dial({rank, kind}, deadline);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kPeerLost) throw;
        throw with_others_that_left(error, rank, plan, links);
      }
    }
  }
  Doorkeeper(plan, links).run(deadline);
}

}  // namespace peal::transport
