#include "peal/transport/links.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/transport/dialler.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// A stranger may stay this long, and so many of them at once beside the ranks that are expected.
constexpr milliseconds kPatience{10'000};
constexpr std::size_t kStrangers = 64;
constexpr int kAtOnce = 64;

/// How often those who have not come are looked for, and how long a look may keep the others
/// waiting.
constexpr milliseconds kLookEvery{200};
constexpr milliseconds kLookFor{100};

/// A connection that has not yet said who it is.
struct Guest {
  net::Handshake handshake;
  TimePoint until;
  std::optional<net::Welcome> welcome;  // once it is over

  int fd() const { return welcome ? welcome->stream->fd() : handshake.fd(); }
};

class Doorkeeper {
 public:
  Doorkeeper(const LinkPlan& plan, Links& links) : plan_(plan), links_(links) {
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
      for (const int listener : plan_.listeners) welcome(listener);
      std::erase_if(guests_, [&](Guest& guest) { return attend(guest); });
      look_for_the_dead();
    }
  }

 private:
  std::span<pollfd> entries() {
    entries_.clear();
    for (const int listener : plan_.listeners) entries_.push_back({listener, POLLIN, 0});
    for (const Guest& guest : guests_) {
      entries_.push_back(
          {guest.fd(), guest.welcome ? short{POLLIN} : guest.handshake.interest(), 0});
    }
    return entries_;
  }

  void welcome(int listener) {
    const net::Address address = net::local_address(listener);
    // In turns, so that strangers who dial without end keep nobody waiting.
    for (int accepted = 0; accepted < kAtOnce; ++accepted) {
      auto fd = net::accept_from(listener, Deadline(Clock::now()));
      if (!fd) return;
      try {
        set_up(plan_, fd->get(), address);
      } catch (const Error& error) {
        report(error);
        continue;
      }
      guests_.push_back({net::Handshake(std::move(*fd),
                                        net::Role::kAcceptor,
                                        context_of(plan_, plan_.self),
                                        net::Hello{plan_.self}),
                         Clock::now() + kPatience,
                         std::nullopt});
      if (guests_.size() <= missing_.size() + kStrangers) continue;
      report(Error(ErrorKind::kResource, "too many strangers; this one waited longest"));
      guests_.pop_front();
    }
  }

  void report(const Error& error) const {
    plan_.report(Severity::kWarning,
                 fmt::format("dropped a connection to rank {} of group {}: {}",
                             plan_.self,
                             plan_.group,
                             error.message()));
  }

  /// Goes on with a guest; returns whether it is done, well or not.
  bool attend(Guest& guest) {
    try {
      if (!guest.welcome) guest.welcome = guest.handshake.advance();
      if (guest.welcome && take(*guest.welcome)) return true;
      if (Clock::now() < guest.until) return false;
      throw Error(ErrorKind::kTimeout, fmt::format("{} says nothing", net::peer_name(guest.fd())));
    } catch (const Error& error) {
      // Those who hang up only looked if this rank lives (look_for_the_dead), or dial again.
      if (error.kind() != ErrorKind::kPeerLost) report(error);
      return true;
    }
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
      throw Error(ErrorKind::kPeerLost,
                  fmt::format("{} ended before the group was connected", peer.name));
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
  std::set<LinkKey> missing_;
  std::list<Guest> guests_;
  std::vector<pollfd> entries_;
  TimePoint looked_ = Clock::now();
  Rank last_looked_for_ = -1;
};

}  // namespace

void make_links(const LinkPlan& plan, Links& links, Deadline deadline) {
  Dialler dialler(plan);
  for (const auto& [rank, peer] : plan.peers) {
    if (rank >= plan.self) break;
    for (const LinkKind kind : peer.kinds) {
      links[{rank, kind}] = dialler.dial({rank, kind}, deadline);
    }
  }
  Doorkeeper(plan, links).run(deadline);
}

}  // namespace peal::transport
