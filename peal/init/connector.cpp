#include "peal/init/connector.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "peal/base/error.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/rendezvous/verdict.h"

namespace peal::init {

Connector::Connector(rendezvous::Meeting meeting, Config config, Report report, Bytes arena)
    : meeting_(std::move(meeting)),
      config_(std::move(config)),
      report_(std::move(report)),
      arena_(arena) {}

std::unique_ptr<transport::Transport> Connector::connect(std::span<const Rank> world_ranks,
                                                         const std::string& group,
                                                         Deadline deadline,
                                                         const std::function<void()>& look) const {
  const auto self = std::find(world_ranks.begin(), world_ranks.end(), meeting_.identity.rank);
  transport::ConnectOptions options;
  options.rank = static_cast<Rank>(self - world_ranks.begin());
  options.size = static_cast<int>(world_ranks.size());
  options.group = group;
  options.secret = meeting_.secret;
  options.job = meeting_.job;
  options.sealing = sealing_of(config_);
  options.choice = config_.transport;
  options.listen_on = listening_addresses();
  options.stage = config_.stage;
  options.arena = arena_;
  options.congestion = config_.congestion;
  options.pulse = {.every = config_.heartbeat, .lost_after = config_.heartbeat_limit};
  options.report = report_;
  options.faults = links_within(config_.faults, world_ranks);

  const auto store = rendezvous::group_store(meeting_.store, group);
  std::vector<Rank> ranks(world_ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const rendezvous::EndedRanks ended(meeting_.ends);
  const auto look_around = [&](std::span<const Rank> missing) {
    const std::string what = "joined the group " + group;
    std::vector<Rank> of_world;
    for (const Rank rank : missing) of_world.push_back(world_ranks[static_cast<std::size_t>(rank)]);
    if (!missing.empty()) {  // else the store stands still
      rendezvous::check_for_failure(*store);
      ended.check(of_world, what);
      rendezvous::check_ends(*meeting_.store, of_world, what);
    }
    if (look) look();
  };
  rendezvous::promise(*store, options.rank, meeting_.self);
  std::unique_ptr<transport::Pending> pending;
  try {
    pending = transport::open(options);
    rendezvous::publish(*store, options.rank, pending->contact());
    return pending->connect(rendezvous::collect(*store, ranks, deadline, look_around), deadline);
  } catch (const std::exception&) {  // also what `look` throws
    const Error error = current_error("the connection of the group " + group);
    throw rendezvous::agree_on_failure(*store, error, options.rank, options.size);
  }
}

std::vector<net::Address> Connector::listening_addresses() const {
  if (meeting_.is_one_host && config_.transport != TransportChoice::kTcp) return {};
  return rendezvous::choose_addresses(
      rendezvous::own_interfaces(),
      config_.interfaces,
      meeting_.is_one_host ? rendezvous::Reach::kThisHost : rendezvous::Reach::kOtherHosts);
}

}  // namespace peal::init
