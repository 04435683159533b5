#include "peal/transport/link/links.h"

#include <utility>

#include "peal/base/error.h"
#include "peal/transport/link/arrivals.h"
#include "peal/transport/link/dialler.h"

namespace peal::transport {

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
  Arrivals(plan, links).await(deadline);
}

}  // namespace peal::transport
