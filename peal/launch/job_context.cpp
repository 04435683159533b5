#include "peal/launch/job_context.h"

#include <fmt/format.h>

#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/net/socket.h"

namespace peal::launch {

namespace {

/// The host is not a part of it: some launchers call the first node "localhost" there.
std::string shared_id(const rendezvous::NodePlace& node) {
  return fmt::format("{}.{}.{}", node.job.empty() ? "nodes" : node.job, node.nodes, node.port);
}

}  // namespace

NewJobContext make_job_context(const rendezvous::NodePlace& node, const std::string& given_id) {
  if (!node.is_only()) {
    return {.job = {.id = given_id.empty() ? shared_id(node) : given_id,
                    .host = node.master,
                    .port = node.port},
            .port = {}};
  }
  if (node.port != 0) {
    JobContext job{.id = net::random_hex(16), .secret = net::make_secret(), .port = node.port};
    if (!node.master.empty()) job.host = node.master;
    return {.job = std::move(job), .port = {}};
  }
  Fd port = net::reserve(net::Address::parse("127.0.0.1:0"));
  JobContext job{
      .id = net::random_hex(16),
      .secret = net::make_secret(),
      .port = net::local_address(port.get()).port(),
  };
  return {std::move(job), std::move(port)};
}

}  // namespace peal::launch
