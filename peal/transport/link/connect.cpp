#include "peal/transport/link/connect.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/accept_limiter.h"
#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"
#include "peal/system/fd.h"
#include "peal/system/open_files.h"
#include "peal/transport/link/hosts.h"
#include "peal/transport/link/links.h"
#include "peal/transport/liveness/heartbeats.h"
#include "peal/transport/liveness/presence.h"
#include "peal/transport/liveness/watch.h"
#include "peal/transport/process_transport.h"
#include "peal/transport/shm/host.h"

namespace peal::transport {
namespace {

/// "auto on rank 0, 2; tcp on rank 1"
std::string choices_of(std::span<const Contact> contacts) {
  constexpr std::size_t kShown = 16;
  std::vector<std::string> texts;
  for (const TransportChoice choice : kAllTransportChoices) {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
      if (contacts[rank].choice == choice) ranks.push_back(static_cast<Rank>(rank));
    }
    if (ranks.empty()) continue;
    const std::size_t more = ranks.size() - std::min(ranks.size(), kShown);
    ranks.resize(ranks.size() - more);
    texts.push_back(fmt::format("{} on rank {}{}",
                                name_of(choice),
                                fmt::join(ranks, ", "),
                                more == 0 ? "" : fmt::format(" and {} more", more)));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Rejects different choices even if the ranks could reach each other, like auto and shm on one
/// host. On two hosts they could not.
void check_choices(std::span<const Contact> contacts) {
  const auto differs = [&](const Contact& contact) {
    return contact.choice != contacts.front().choice;
  };
  if (std::ranges::none_of(contacts, differs)) return;
  throw Error(ErrorKind::kMismatch,
              fmt::format("the ranks are configured with different transports: {}; give all the "
                          "same PEAL_TRANSPORT, or leave it unset on all",
                          choices_of(contacts)));
}

/// All ranks decide alike, so that no rank waits for ranks that reject the faults.
void check_faults(std::span<const LinkFault> faults, std::span<const Contact> contacts) {
  for (const LinkFault& fault : faults) {
    const Contact& from = contacts[static_cast<std::size_t>(fault.from)];
    const Contact& to = contacts[static_cast<std::size_t>(fault.to)];
    if (from.choice == TransportChoice::kTcp || from.host_id != to.host_id) continue;
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the fault \"{}\" cannot be injected: {} and {} share memory, and only "
                    "bytes on the network can be broken; PEAL_TRANSPORT=tcp uses the network "
                    "inside a host too",
                    to_text(fault),
                    name_of(fault.from, from),
                    name_of(fault.to, to)));
  }
}

/// Beats are late now and then, so a limit of one beat would be too short.
void check_heartbeat(const HeartbeatLimits& heartbeat) {
  if (heartbeat.lost_after >= kMissedBeats * heartbeat.every) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("PEAL_HEARTBEAT_LIMIT is {} ms and PEAL_HEARTBEAT {} ms: make the limit "
                          "at least {} times as long",
                          heartbeat.lost_after.count(),
                          heartbeat.every.count(),
                          kMissedBeats));
}

/// Checks that the system supports it before any connection is made.
void check_congestion(const std::string& name) {
  try {
    net::check_congestion_control(name);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("PEAL_CONGESTION: {}", error.message()));
  }
}

/// Which ranks are reached by shared memory, this rank included.
std::vector<bool> near_ranks(const ConnectOptions& options, std::span<const Contact> contacts) {
  const auto own = static_cast<std::size_t>(options.rank);
  std::vector<bool> near(contacts.size(), false);
  for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
    const bool same_host = contacts[rank].host_id == contacts[own].host_id;
    if (options.choice == TransportChoice::kShm && !same_host) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{} and {} cannot share memory: they are on different hosts, or in "
                              "containers with different networks or users; PEAL_TRANSPORT=auto "
                              "reaches both",
                              name_of(options.rank, contacts[own]),
                              name_of(static_cast<Rank>(rank), contacts[rank])));
    }
    near[rank] = rank == own || (same_host && options.choice != TransportChoice::kTcp);
  }
  return near;
}

enum class Way : unsigned char { kSharedMemory, kNetwork, kNetworkLater };

LinkPlan::Peer plan_of(Rank rank, const Contact& contact, Way way) {
  const bool near = way == Way::kSharedMemory;
  LinkPlan::Peer peer{name_of(rank, contact), {}, {}};
  std::ranges::copy_if(contact.addresses,
                       std::back_inserter(peer.addresses),
                       [&](const net::Address& address) { return address.is_unix() == near; });
  const std::vector of_network = {LinkKind::kData, LinkKind::kMail};
  if (way == Way::kSharedMemory) peer.kinds = {LinkKind::kHost};
  if (way == Way::kNetwork) peer.kinds = of_network;
  if (way == Way::kNetworkLater) peer.later_kinds = of_network;
  if (peer.addresses.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} does not listen at any {}; check PEAL_INTERFACE there",
                            peer.name,
                            near ? "unix address" : "network address"));
  }
  return peer;
}

/// Raises the limit for a group of `ranks` and for other descriptors of the program. The least that
/// must be possible includes the descriptors that are open already, but none for strangers.
void allow_descriptors(int ranks) {
  constexpr long kForEach = 4;
  constexpr long kForItself = 16;  // files, bells, listeners, and short-lived descriptors
  constexpr long kForOthers = 256;
  constexpr auto kForUnproved = static_cast<long>(net::AcceptLimits{}.half_open);
  const long least = open_files() + (ranks == 1 ? 0 : kForItself + kForEach * (ranks - 1));
  const long wished = least + kForOthers + kForUnproved + 2 * ranks;
  allow_open_files(least, wished, fmt::format("a group of {} ranks", ranks));
}

Bytes physical_memory() {
  return Bytes(static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE));
}

/// A rank that times out may wait for a rank that waits for a stopped rank. So the message starts
/// with the stopped ranks, of those whose processes are visible from here.
Error with_stopped(const Error& timeout, std::span<const Contact> contacts, const Contact& own) {
  constexpr std::size_t kShown = 16;
  std::vector<std::string> stopped;
  for (std::size_t rank = 0; rank < contacts.size() && stopped.size() < kShown; ++rank) {
    if (!is_visible(contacts[rank], own)) continue;
    const Presence presence = presence_of_process(contacts[rank].pid);
    if (presence.state != Presence::State::kStopped) continue;
    const std::string name = name_of(static_cast<Rank>(rank), contacts[rank]);
    stopped.push_back(fmt::format("{} {}; ", name, describe(presence)));
  }
  return Error(timeout.kind(), fmt::format("{}{}", fmt::join(stopped, ""), timeout.message()));
}

/// The connections to ranks of this host. Descriptors are passed over them too.
std::map<Rank, Fd> take_host_links(Links& links) {
  std::map<Rank, Fd> taken;
  for (auto& [rank, stream] : take(links, LinkKind::kHost)) taken[rank] = stream->release();
  return taken;
}

class PendingProcessTransport final : public PendingTransport {
 public:
  explicit PendingProcessTransport(const ConnectOptions& options)
      : options_(options), contact_(own_contact()) {
    contact_.choice = options.choice;
    check_heartbeat(options.heartbeat);
    if (!options.congestion.empty()) check_congestion(options.congestion);
    allow_descriptors(options.size);
    if (options.choice != TransportChoice::kShm) {
      for (const net::Address& address : options.listen_on) listen(address);
    }
    if (options.choice != TransportChoice::kTcp) {
      listen(net::Address::abstract_unix("peal-" + net::random_hex(32)));
    }
  }

  const Contact& contact() const override { return contact_; }

  std::unique_ptr<Transport> connect(std::span<const Contact> contacts,
                                     Deadline deadline) override {
    if (contacts.size() != static_cast<std::size_t>(options_.size) || options_.rank < 0 ||
        options_.rank >= options_.size) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("rank {} of a group of {} was given {} contacts",
                              options_.rank,
                              options_.size,
                              contacts.size()));
    }
    check_choices(contacts);
    check_faults(options_.faults, contacts);
    try {
      return join(contacts, near_ranks(options_, contacts), deadline);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
      throw with_stopped(error, contacts, contacts[static_cast<std::size_t>(options_.rank)]);
    }
  }

 private:
  std::unique_ptr<Transport> join(std::span<const Contact> contacts,
                                  std::vector<bool> near,
                                  Deadline deadline) {
    LinkPlan plan = make_plan(contacts, near);
    make_links(plan, links_, deadline);
    host_links_ = take_host_links(links_);
    std::unique_ptr<Host> host = join_host(near, deadline);
    keep_listeners(plan);
    return make_process_transport(options_,
                                  contacts,
                                  {.near = std::move(near),
                                   .host = std::move(host),
                                   .links = std::move(links_),
                                   .plan = std::move(plan),
                                   .listeners = std::move(listeners_)});
  }

  /// Closes the listeners at which no link can come any more.
  void keep_listeners(const LinkPlan& plan) {
    const bool has_later = std::ranges::any_of(
        plan.peers, [](const auto& entry) { return !entry.second.later_kinds.empty(); });
    std::erase_if(listeners_, [&](const Fd& listener) {
      return !has_later || net::local_address(listener.get()).is_unix();
    });
  }

  void listen(const net::Address& address) {
    listeners_.push_back(net::listen_on(address));
    contact_.addresses.push_back(net::local_address(listeners_.back().get()));
  }

  LinkPlan make_plan(std::span<const Contact> contacts, const std::vector<bool>& near) const {
    LinkPlan plan;
    plan.self = options_.rank;
    plan.group = options_.group;
    plan.context = {options_.secret, options_.job, "", options_.protection};
    plan.report = options_.report;
    plan.congestion = options_.congestion;
    for (const Fd& listener : listeners_) plan.listeners.push_back(listener.get());
    const Way far = options_.size <= options_.linked_at_start ? Way::kNetwork : Way::kNetworkLater;
    for (Rank rank = 0; rank < options_.size; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const Way way = near[index] ? Way::kSharedMemory : far;
      if (rank != options_.rank) plan.peers[rank] = plan_of(rank, contacts[index], way);
    }
    for (const Rank rank : watched_by(options_.rank, number_hosts(contacts))) {
      LinkPlan::Peer& peer = plan.peers[rank];
      peer.kinds.push_back(LinkKind::kBeats);
      // The ranks that watch each other pass the errors of the group on.
      if (std::erase(peer.later_kinds, LinkKind::kMail) > 0) peer.kinds.push_back(LinkKind::kMail);
    }
    return plan;
  }

  /// Null if all ranks use TCP, or if this rank is alone on its host and others are elsewhere.
  std::unique_ptr<Host> join_host(const std::vector<bool>& near, Deadline deadline) {
    HostOptions host{.self = options_.rank,
                     .ranks = {},
                     .layout = {.data_ring = options_.data_ring,
                                .mail_ring = options_.mail_ring,
                                .stage = options_.stage},
                     .arena = std::min(options_.arena, physical_memory()),
                     .others = others_of(near),
                     .peers = options_.peers ? options_.peers : std::make_shared<HostPeers>()};
    for (Rank rank = 0; rank < options_.size; ++rank) {
      if (near[static_cast<std::size_t>(rank)]) host.ranks.push_back(rank);
    }
    if (host.ranks.size() == 1 && options_.size > 1) return nullptr;
    return std::make_unique<Host>(host, host_links_, deadline);
  }

  static HostOptions::Others others_of(const std::vector<bool>& near) {
    return std::ranges::count(near, false) == 0 ? HostOptions::Others::kNone
                                                : HostOptions::Others::kOnOtherHosts;
  }

  ConnectOptions options_;
  Contact contact_;
  std::vector<Fd> listeners_;
  Links links_;
  std::map<Rank, Fd> host_links_;
};

}  // namespace

std::unique_ptr<PendingTransport> open(const ConnectOptions& options) {
  return std::make_unique<PendingProcessTransport>(options);
}

}  // namespace peal::transport
