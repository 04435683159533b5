#include "peal/init/connector.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/rendezvous/meeting_result.h"

namespace peal::init {

Connector::Connector(rendezvous::Meeting meeting, Config config, Report report, Bytes arena)
    : meeting_(std::move(meeting)),
      config_(std::move(config)),
      report_(std::move(report)),
      arena_(arena) {
  const bool shares = !meeting_.no_shared_memory || config_.transport != TransportChoice::kAuto;
  if (shares && config_.transport != TransportChoice::kTcp) {
    peers_ = std::make_shared<transport::HostPeers>();
  }
  if (shares) return;
  config_.transport = TransportChoice::kTcp;
  if (meeting_.identity.rank != 0 || meeting_.identity.world_size == 1) return;
  report_(
      fmt::format("the ranks use TCP inside a host too, because shared memory is not available "
                  "to {}; set PEAL_TRANSPORT=tcp to avoid this warning",
                  *meeting_.no_shared_memory));
}

Rank Connector::rank_among(std::span<const Rank> world_ranks) const {
  const auto self = std::find(world_ranks.begin(), world_ranks.end(), meeting_.identity.rank);
  return static_cast<Rank>(self - world_ranks.begin());
}

transport::ConnectOptions Connector::options_for(std::span<const Rank> world_ranks,
                                                 const std::string& group) const {
  transport::ConnectOptions options;
  options.rank = rank_among(world_ranks);
  options.size = static_cast<int>(world_ranks.size());
  options.group = group;
  options.world_ranks.assign(world_ranks.begin(), world_ranks.end());
  options.secret = meeting_.secret;
  options.job = meeting_.job;
  options.protection = link_protection_of(config_);
  options.choice = config_.transport;
  options.listen_on = listening_addresses();
  options.stage = config_.stage;
  options.arena = arena_;
  options.congestion = config_.congestion;
  options.linked_at_start = config_.linked_at_start;
  options.heartbeat = {.every = config_.heartbeat, .lost_after = config_.heartbeat_limit};
  options.report = report_;
  options.peers = peers_;
  options.faults = links_within(config_.faults, world_ranks);
  return options;
}

void Connector::connect(std::span<const Rank> world_ranks,
                        const std::string& group,
                        Deadline deadline,
                        const std::function<void()>& look,
                        const Use& use) const {
  const Rank self = rank_among(world_ranks);
  const int size = static_cast<int>(world_ranks.size());
  const auto store = rendezvous::group_store(meeting_.store, group);
  std::vector<Rank> ranks(world_ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const rendezvous::EndedRanks ended(meeting_.ends);
  bool has_joined = false;
  bool has_ended_call = false;  // whether `look` threw
  const auto look_around = [&](std::span<const Rank> missing) {
    const std::string what = "joined the group " + group;
    std::vector<Rank> of_world;
    for (const Rank rank : missing) of_world.push_back(world_ranks[static_cast<std::size_t>(rank)]);
    if (!missing.empty()) {  // otherwise the store has nothing new
      rendezvous::check_for_failure(*store);
      ended.check(of_world, what);
      rendezvous::check_ends(*meeting_.store, of_world, what);
    }
    if (!look) return;
    has_ended_call = true;
    look();
    has_ended_call = false;
  };
  std::unique_ptr<transport::PendingTransport>
      pending;  // keeps connections open until all know the error
  try {
    rendezvous::set_contact_will(*store, self, meeting_.self);
    pending = transport::open(options_for(world_ranks, group));
    rendezvous::publish(*store, self, pending->contact());
    use(pending->connect(rendezvous::collect(*store, ranks, deadline, look_around), deadline));
    has_joined = true;
    rendezvous::agree_on_success(*store, self, size, deadline, look_around);
    const bool serves_store = meeting_.identity.rank == 0;
    rendezvous::stay_until_all_know(*store,
                                    serves_store ? rendezvous::Stays::kYes : rendezvous::Stays::kNo,
                                    size,
                                    deadline,
                                    look_around);
  } catch (const std::exception&) {  // also an exception of `look`
    const Error error = current_error("the connection of the group " + group);
    const auto failure = rendezvous::agree_on_failure(*store, error, self, size);
    if (failure) throw Error(*failure);
    if (!has_joined || has_ended_call) throw Error(error);
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
