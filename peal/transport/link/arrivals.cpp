#include "peal/transport/link/arrivals.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/net/socket.h"
#include "peal/transport/link/dialler.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How often a rank checks whether missing ranks have ended, and how long one check may delay
/// the other connections.
constexpr milliseconds kLookEvery{200};
constexpr milliseconds kLookFor{100};

/// The links that later ranks make while the group connects.
std::set<LinkKey> links_of_later_ranks(const LinkPlan& plan) {
  std::set<LinkKey> keys;
  for (const auto& [rank, peer] : plan.peers) {
    if (rank < plan.self) continue;
    for (const LinkKind kind : peer.kinds) keys.insert({rank, kind});
  }
  return keys;
}

}  // namespace

Arrivals::Arrivals(const LinkPlan& plan, Links& links)
    : plan_(plan),
      links_(links),
      acceptor_(plan,
                links_of_later_ranks(plan).size(),
                {.decide = [this](const LinkKey& key) { return decide(key); },
                 .take =
                     [this](const LinkKey& key, std::unique_ptr<net::Stream> stream) {
                       links_[key] = std::move(stream);
                       missing_.erase(key);
                     }}),
      missing_(links_of_later_ranks(plan)) {}

void Arrivals::await(Deadline deadline) {
  while (!missing_.empty()) {
    if (deadline.passed()) throw absence();
    entries_.clear();
    acceptor_.add_entries(entries_);
    net::poll_until(entries_, deadline.within(kLookEvery));
    acceptor_.advance();
    find_ended_processes();
  }
}

/// A rank that dials again has lost its earlier connection: the last connection counts. A link that
/// is made later must wait until all ranks are ready for it.
Answer Arrivals::decide(const LinkKey& key) const {
  const auto peer = plan_.peers.find(key.peer);
  if (peer == plan_.peers.end()) return Answer::kUnexpected;
  const auto has = [&](const std::vector<LinkKind>& kinds) {
    return std::ranges::find(kinds, key.kind) != kinds.end();
  };
  if (has(peer->second.later_kinds)) return Answer::kNotNow;
  return key.peer > plan_.self && has(peer->second.kinds) ? Answer::kTaken : Answer::kUnexpected;
}

void Arrivals::find_ended_processes() {
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

Error Arrivals::absence() const {
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
