#include "peal/rendezvous/open_store.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/address.h"
#include "peal/net/proof.h"
#include "peal/net/resolve.h"
#include "peal/net/socket.h"
#include "peal/net/subnet.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/store/file_store.h"
#include "peal/store/memory_store.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"

namespace peal::rendezvous {
namespace {

using Addresses = std::vector<net::Address>;

/// For messages.
constexpr const char* kServer = "rank 0's store";

/// Rank 0's part: the server, and its own connection to it.
struct Host {
  Host(std::vector<Fd> listeners,
       const net::ProofContext& context,
       Timeout timeout,
       Deadline deadline,
       const Report& report)
      : server(std::move(listeners), context, {}, report),
        client(store::connect_tcp_store({server.address()}, context, timeout, deadline, kServer)) {}
  ~Host() {
    client.reset();
    // Ranks leave at the same time, but not at the same moment; and one that is stopped stays.
    server.wait_until_deserted(Deadline::after(std::chrono::milliseconds(300)));
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  store::TcpStoreServer server;
  std::unique_ptr<store::Store> client;
};

/// Waits for names too: that of a master that is about to start may not be known yet.
Addresses resolve_patiently(const PortPlace& place, Deadline deadline, const Interrupt& interrupt) {
  std::optional<Error> unknown;
  while (true) {
    try {
      return net::resolve(place.host, place.port, deadline, net::ask_system, interrupt);
    } catch (const Error& error) {
      // What the service has said tells more than that it did not say it once again.
      if (error.kind() == ErrorKind::kTimeout && unknown) throw Error(*unknown);
      if (error.kind() != ErrorKind::kUsage || deadline.passed()) throw;
      unknown = error;
    }
    let_interrupt(interrupt);
    std::this_thread::sleep_until(deadline.within(std::chrono::milliseconds(500)).at());
  }
}

bool is_own(const net::Address& address, std::span<const Interface> interfaces) {
  const net::Address host = address.with_port(0);
  const bool is_v4_loopback = host.is_loopback() && host.raw()->sa_family == AF_INET;
  const bool is_any =
      host == net::Address::parse("0.0.0.0:0") || host == net::Address::parse("[::]:0");
  return is_v4_loopback || is_any ||
         std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& interface) {
           return interface.address == host;
         });
}

/// Many a machine knows itself under a name that leads to loopback, where other machines find the
/// real address. Then rank 0 listens at its real addresses too, if there are ranks elsewhere.
bool leads_elsewhere_for_others(const PortPlace& place,
                                const Launch& launch,
                                const Addresses& found) {
  const bool all_loopback = std::all_of(
      found.begin(), found.end(), [](const net::Address& a) { return a.is_loopback(); });
  const bool is_number = net::Subnet::parse(place.host).has_value();
  if (!all_loopback || is_number) return false;
  const Identity& self = launch.identity;
  if (launch.local_is_known) return self.local_world_size < self.world_size;
  return place.host != "localhost";
}

/// A link-local address is one of each network that the machine is in.
void check_scopes(const PortPlace& place, const Addresses& found) {
  for (const net::Address& address : found) {
    if (address.raw()->sa_family != AF_INET6) continue;
    sockaddr_in6 raw{};
    std::memcpy(&raw, address.raw(), sizeof raw);
    if (!IN6_IS_ADDR_LINKLOCAL(&raw.sin6_addr) || raw.sin6_scope_id != 0) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is a link-local address and lacks its interface: write it as in "
                            "{}%eth0, with the interface of each rank's own machine",
                            place.host,
                            place.host));
  }
}

/// Exactly the addresses of this machine that the place means. `found`: those of its name.
Addresses addresses_to_serve(const PortPlace& place,
                             const Launch& launch,
                             const Config& config,
                             Addresses found) {
  // The user may name a link-local address, with the interface of each machine after a %.
  const std::vector<Interface> interfaces = own_interfaces(LinkLocal::kWith);
  const bool widen = leads_elsewhere_for_others(place, launch, found);
  std::erase_if(found, [&](const net::Address& a) { return !is_own(a, interfaces); });
  if (widen) {
    for (const net::Address& address :
         choose_addresses(own_interfaces(), config.interfaces, Reach::kOtherHosts)) {
      found.push_back(address.with_port(place.port));
    }
  }
  if (!found.empty()) return found;
  std::vector<std::string> own;
  for (const Interface& interface : interfaces) {
    const std::string text = interface.address.to_string();
    own.push_back(text.substr(0, text.rfind(':')));
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("rank 0 serves the meeting, but \"{}\" is no address of the machine that "
                          "it runs on: start rank 0 there, or name this machine ({})",
                          place.host,
                          fmt::join(own, ", ")));
}

std::vector<Fd> listen_on_all(const Addresses& addresses) {
  std::vector<Fd> listeners;
  for (const net::Address& address : addresses) listeners.push_back(net::listen_on(address));
  return listeners;
}

/// Where the port is taken, by whoever serves this job there already; or by an earlier meeting of
/// the same processes, which may end at any moment.
std::shared_ptr<store::Store> serve(const Addresses& addresses,
                                    const net::ProofContext& context,
                                    Timeout timeout,
                                    Deadline deadline,
                                    const Report& report,
                                    const Interrupt& interrupt) {
  constexpr auto kPatience = std::chrono::seconds(5);
  constexpr auto kTry = std::chrono::milliseconds(500);
  constexpr auto kBetweenTries = std::chrono::milliseconds(20);
  const Deadline patience = deadline.within(kPatience);
  while (true) {
    try {
      auto host =
          std::make_shared<Host>(listen_on_all(addresses), context, timeout, deadline, report);
      return {host, host->client.get()};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kResource || patience.passed()) throw;
    }
    try {
      return store::connect_tcp_store(
          addresses, context, timeout, patience.within(kTry), kServer, interrupt);
    } catch (const Error&) {  // it is not our job that is there, or not any more
      std::this_thread::sleep_for(kBetweenTries);
    }
  }
}

/// Waits for rank 0 to serve, as long as its process has not ended. Whoever is there but does not
/// answer yet is not asked twice.
std::shared_ptr<store::Store> connect_while_rank_0_lives(const Addresses& addresses,
                                                         const net::ProofContext& context,
                                                         const EndedRanks& ended,
                                                         Timeout timeout,
                                                         Deadline deadline,
                                                         const Interrupt& interrupt) {
  while (ended.are_noted()) {
    const Deadline slice = deadline.within(kLookForEndsEvery);
    try {
      return store::connect_tcp_store(addresses, context, timeout, slice, kServer, interrupt);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kTimeout) break;
      const bool is_just_not_there = error.kind() == ErrorKind::kPeerLost && slice.passed();
      if (!is_just_not_there || deadline.passed()) throw;
    }
    ended.check(kRank0, "served the meeting");
  }
  return store::connect_tcp_store(addresses, context, timeout, deadline, kServer, interrupt);
}

std::shared_ptr<store::Store> join(const Addresses& addresses,
                                   const Identity& self,
                                   const std::string& place,
                                   const net::ProofContext& context,
                                   const EndedRanks& ended,
                                   Timeout timeout,
                                   Deadline deadline,
                                   const Interrupt& interrupt) {
  const TimePoint begin = Clock::now();
  try {
    return connect_while_rank_0_lives(addresses, context, ended, timeout, deadline, interrupt);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kTimeout) {
      throw Error(ErrorKind::kTimeout,
                  fmt::format("rank {} found somebody at {}, where rank 0 serves the meeting, who "
                              "does not answer: {}; look whether rank 0 stands still (its "
                              "process is stopped), and who else uses this port",
                              self.rank,
                              place,
                              error.message()));
    }
    if (error.kind() != ErrorKind::kPeerLost) throw;
    ended.check(kRank0, "served the meeting");
    const bool is_near = addresses.front().is_unix();
    const std::chrono::duration<double> tried = Clock::now() - begin;
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("rank {} cannot reach rank 0 at {}, and has tried for {:.1f} s: {}; look "
                    "whether rank 0 runs{}",
                    self.rank,
                    place,
                    tried.count(),
                    error.message(),
                    is_near ? ""
                            : ", whether MASTER_ADDR and MASTER_PORT are the same for all ranks, "
                              "and whether a firewall is between"));
  }
}

/// Whoever reaches a port without a secret may join, and take part in everything.
void check_secrecy(const Addresses& addresses, const Config& config, const Report& report) {
  const auto open = std::ranges::find_if(
      addresses, [](const net::Address& address) { return !address.is_loopback(); });
  if (open == addresses.end() || !config.secret.empty()) return;
  if (config.secrecy == Secrecy::kRequired) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the ranks meet at {}, which other machines can reach, and there is no "
                            "secret: give all ranks the same PEAL_SECRET or PEAL_SECRET_FILE, or, "
                            "where nobody else is on this network, PEAL_INSECURE=on",
                            open->to_string()));
  }
  report(
      Severity::kWarning,
      fmt::format("the ranks meet at {} without a secret, as PEAL_INSECURE says: whoever reaches "
                  "it can join the job",
                  open->to_string()));
}

struct Open {
  const Launch& launch;
  const Config& config;
  const EndedRanks& ended;
  Deadline deadline;
  const Report& report;
  const Interrupt& interrupt;

  std::shared_ptr<store::Store> operator()(const NoPlace&) const {
    return store::make_memory_store();
  }

  std::shared_ptr<store::Store> operator()(const FilePlace& place) const {
    return store::open_file_store(
        place.path, {launch.identity.world_size, config.timeout}, deadline, interrupt);
  }

  std::shared_ptr<store::Store> operator()(const LocalPlace& place) const {
    const net::Address address = net::Address::abstract_unix(place.name);
    if (launch.identity.rank == 0) {
      return serve({address}, context(), config.timeout, deadline, report, interrupt);
    }
    return join({address},
                launch.identity,
                address.to_string(),
                context(),
                ended,
                config.timeout,
                deadline,
                interrupt);
  }

  std::shared_ptr<store::Store> operator()(const PortPlace& place) const {
    Addresses found = resolve_patiently(place, deadline, interrupt);
    check_scopes(place, found);
    if (launch.identity.rank == 0) {
      found = addresses_to_serve(place, launch, config, std::move(found));
      check_secrecy(found, config, report);
      return serve(found, context(), config.timeout, deadline, report, interrupt);
    }
    check_secrecy(found, config, report);
    return join(found,
                launch.identity,
                fmt::format("{}:{}", place.host, place.port),
                context(),
                ended,
                config.timeout,
                deadline,
                interrupt);
  }

  net::ProofContext context() const {
    return {config.secret, launch.job, "store", sealing_of(config)};
  }
};

}  // namespace

std::shared_ptr<store::Store> open_store(const Place& place,
                                         const Launch& launch,
                                         const Config& config,
                                         const EndedRanks& ended,
                                         Deadline deadline,
                                         const Report& report,
                                         const Interrupt& interrupt) {
  return std::visit(Open{launch, config, ended, deadline, report, interrupt}, place);
}

}  // namespace peal::rendezvous
