#include "peal/transport/link/acceptor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/net/socket.h"
#include "peal/transport/link/dialler.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How often the acceptor checks whether missing ranks have ended, and how long one check may delay
/// the other connections.
constexpr milliseconds kLookEvery{200};
constexpr milliseconds kLookFor{100};

/// The expected ranks may be many and slow, so the limit of half-open connections is higher by the
/// number of their links.
net::AcceptLimits limits_for(const LinkPlan& plan) {
  net::AcceptLimits limits;
  for (const auto& [rank, peer] : plan.peers) {
    if (rank > plan.self) limits.half_open += peer.kinds.size();
  }
  return limits;
}

}  // namespace

Acceptor::Acceptor(const LinkPlan& plan, Links& links)
    : plan_(plan),
      links_(links),
      listener_(fmt::format("rank {} of group {}", plan.self, plan.group)),
      accept_limiter_(limits_for(plan), listener_, plan.report) {
  for (const auto& [rank, peer] : plan.peers) {
    if (rank < plan.self) continue;
    for (const LinkKind kind : peer.kinds) missing_.insert({rank, kind});
  }
}

void Acceptor::run(Deadline deadline) {
  while (!missing_.empty()) {
    if (deadline.passed()) throw absence();
    net::poll_until(entries(), deadline.within(kLookEvery));
    welcome();
    const std::size_t half_open = count_half_open();
    std::erase_if(pending_, [&](Incoming& pending) { return advance(pending, half_open); });
    find_ended_processes();
  }
}

std::size_t Acceptor::count_half_open() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pending_, [](const Incoming& pending) { return !pending.welcome; }));
}

bool Acceptor::may_accept() const {
  return accept_limiter_.may_accept(count_half_open(), Clock::now());
}

std::span<pollfd> Acceptor::entries() {
  entries_.clear();
  const bool accepts = may_accept();
  for (const int listener : plan_.listeners) {
    entries_.push_back({accepts ? listener : -1, POLLIN, 0});  // poll ignores -1
  }
  for (const Incoming& pending : pending_) {
    entries_.push_back(
        {pending.fd(), pending.welcome ? short{POLLIN} : pending.handshake.interest(), 0});
  }
  return entries_;
}

void Acceptor::welcome() {
  constexpr int kMost = 256;
  bool some = true;
  for (int i = 0; i < kMost && some; ++i) {
    some = false;
    for (const int listener : plan_.listeners) some |= may_accept() && welcome_from(listener);
  }
}

bool Acceptor::welcome_from(int listener) {
  const TimePoint now = Clock::now();
  std::optional<Fd> fd;
  try {
    fd = net::accept_from(listener, Deadline(now));
  } catch (const Error&) {
    accept_limiter_.accept_failed(now);
  }
  if (fd) take_in(std::move(*fd), now);
  return fd.has_value();
}

void Acceptor::take_in(Fd fd, TimePoint now) {
  net::Address from;
  try {
    net::check_neighbour(fd.get());
    from = net::peer_address(fd.get());
    set_up(plan_, fd.get(), from);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) accept_limiter_.closed_unread(error.message(), now);
    return;  // else the connector has closed the connection
  }
  if (accept_limiter_.is_paused(from, now)) return;
  pending_.push_back({from,
                      net::Handshake(std::move(fd),
                                     net::Role::kAcceptor,
                                     context_of(plan_, plan_.self),
                                     net::Hello{plan_.self}),
                      now,
                      std::nullopt});
}

bool Acceptor::advance(Incoming& pending, std::size_t half_open) {
  try {
    if (!pending.welcome) pending.welcome = pending.handshake.advance();
    if (pending.welcome && take(*pending.welcome)) return true;
    const Timeout proof_timeout = accept_limiter_.proof_timeout(pending.welcome ? 0 : half_open);
    if (Clock::now() < pending.since + proof_timeout) return false;
    if (!pending.welcome) throw pending.handshake.too_slow();
    throw Error(ErrorKind::kTimeout,
                fmt::format("{} has not said which link it is for", net::peer_name(pending.fd())));
  } catch (const Error& error) {
    drop(pending, error);
    return true;
  }
}

void Acceptor::drop(const Incoming& pending, const Error& error) {
  if (pending.welcome) {
    plan_.report(fmt::format("dropped a connection to {}: {}", listener_, error.message()));
  } else if (error.kind() != ErrorKind::kPeerLost || pending.handshake.has_proof()) {
    accept_limiter_.dropped(pending.from, error.message(), Clock::now());
  }  // else the connector hung up: to check that this rank lives (find_ended_processes), or to
     // redial
}

bool Acceptor::take(net::Welcome& pending) {
  std::array<std::byte, 1> request{};
  const net::Moved moved = pending.stream->try_read(request);
  if (moved.closed) return true;
  if (moved.bytes == 0_B) return false;
  const LinkKey key{pending.other.rank, static_cast<LinkKind>(request[0])};
  const bool expected = expects(key);
  const std::array answer = {expected ? kTaken : kUnexpected};
  const std::array<std::span<const std::byte>, 1> pieces = {answer};
  if (pending.stream->try_write(pieces).bytes == 0_B) return true;
  if (!expected) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "rank {} has connected with a link that this rank does not expect: the ranks do not "
            "agree on how they reach each other; give all ranks the same PEAL_TRANSPORT, and each "
            "process its own rank",
            key.peer));
  }
  links_[key] = std::move(pending.stream);
  missing_.erase(key);
  return true;
}

bool Acceptor::expects(const LinkKey& key) const {
  const auto peer = plan_.peers.find(key.peer);
  if (key.peer <= plan_.self || peer == plan_.peers.end()) return false;
  return std::ranges::find(peer->second.kinds, key.kind) != peer->second.kinds.end();
}

void Acceptor::find_ended_processes() {
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

Error Acceptor::absence() const {
  std::vector<std::string> names;
  for (const LinkKey& key : missing_) {
    const std::string& name = plan_.peers.at(key.peer).name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return Error(
      ErrorKind::kTimeout,
      fmt::format("did not connect to rank {} in time: {}; check what they do, and whether "
                  "a firewall blocks them",
                  plan_.self,
                  fmt::join(names, ", ")));
}

}  // namespace peal::transport
