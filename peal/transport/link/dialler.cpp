#include "peal/transport/link/dialler.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/address.h"
#include "peal/net/socket.h"
#include "peal/transport/link/dial.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// Whether the peer has closed its link to this rank or, without a link, does not listen any more.
bool has_left(const LinkPlan& plan, const Links& links, Rank peer, Deadline deadline) {
  for (const auto& [key, stream] : links) {
    if (key.peer == peer) return net::is_closed(stream->fd());
  }
  return is_gone(plan.peers.at(peer), deadline);
}

}  // namespace

std::unique_ptr<net::Stream> Dialler::dial(const LinkKey& key, Deadline deadline) {
  Dial dial(plan_, key, favourite_);
  while (true) {
    if (auto stream = dial.advance(Clock::now())) {
      favourite_ = dial.address();
      return stream;
    }
    if (deadline.passed()) throw dial.unreachable();
    pollfd entry = dial.entry();
    net::poll_until({&entry, 1}, Deadline(std::min(deadline.at(), dial.due())));
  }
}

bool is_gone(const LinkPlan::Peer& peer, Deadline deadline) {
  for (const net::Address& address : peer.addresses) {
    try {
      net::connect_to(address, deadline);
      return false;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kPeerLost) return false;
    }
  }
  return true;
}

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
                           more.empty() ? "" : fmt::format(", and {}", fmt::join(more, ", "))),
               loss.details());
}

}  // namespace peal::transport
