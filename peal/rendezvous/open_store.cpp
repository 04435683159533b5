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

#include "peal/base/bracketed.h"
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

net::ProofContext proof_context_of(const MeetContext& context) {
  const Config& config = context.config;
  return {config.secret, context.launch.job, "store", link_protection_of(config)};
}

std::unique_ptr<store::Store> connect_to_store(const Addresses& addresses,
                                               const MeetContext& context,
                                               Deadline deadline) {
  return store::connect_tcp_store(addresses,
                                  proof_context_of(context),
                                  context.config.timeout,
                                  deadline,
                                  "rank 0's store",
                                  context.interrupt);
}

/// Rank 0's part: the server, and rank 0's connection to it.
struct Host {
  Host(std::vector<Fd> listeners, const MeetContext& context)
      : server(std::move(listeners), proof_context_of(context), {}, context.report),
        client(connect_to_store({server.address()}, context, context.deadline)) {}
  ~Host() {
    client.reset();
    // Ranks leave within a short time, so wait for them. Many ranks leave one after the other. The
    // wait is limited, since a rank that is stopped never leaves.
    server.wait_until_all_have_left(std::chrono::milliseconds(300));
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  store::TcpStoreServer server;
  std::unique_ptr<store::Store> client;
};

/// Retries an unknown name until the deadline: the host of a master that is about to start may have
/// no name yet.
Addresses resolve_patiently(const StoreAtPort& place, const MeetContext& context) {
  const Deadline deadline = context.deadline;
  std::optional<Error> unknown;
  while (true) {
    try {
      return net::resolve(place.host, place.port, deadline, net::ask_system, context.interrupt);
    } catch (const Error& error) {
      // The earlier answer says more than the timeout of the retry.
      if (error.kind() == ErrorKind::kTimeout && unknown) throw Error(*unknown);
      if (error.kind() != ErrorKind::kUsage || deadline.passed()) throw;
      unknown = error;
    }
    let_interrupt(context.interrupt);
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

/// On many machines the machine's name resolves to loopback, while other machines resolve it to the
/// real address. In this case rank 0 also listens at its real addresses, if ranks run elsewhere.
bool leads_elsewhere_for_others(const StoreAtPort& place,
                                const LauncherEnvironment& launch,
                                const Addresses& found) {
  const bool all_loopback = std::all_of(
      found.begin(), found.end(), [](const net::Address& a) { return a.is_loopback(); });
  const bool is_number = net::Subnet::parse(place.host).has_value();
  if (!all_loopback || is_number) return false;
  const Identity& self = launch.identity;
  if (launch.local_is_known) return self.local_world_size < self.world_size;
  return place.host != "localhost";
}

/// Rejects a link-local address without an interface: the same address exists on each network of
/// the machine.
void check_scopes(const StoreAtPort& place, const Addresses& found) {
  for (const net::Address& address : found) {
    if (address.raw()->sa_family != AF_INET6) continue;
    sockaddr_in6 raw{};
    std::memcpy(&raw, address.raw(), sizeof raw);
    if (!IN6_IS_ADDR_LINKLOCAL(&raw.sin6_addr) || raw.sin6_scope_id != 0) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is a link-local address and lacks its interface: write {}%eth0, "
                            "with the interface's name on each rank's machine",
                            place.host,
                            place.host));
  }
}

/// The addresses of this machine at which rank 0 listens. `found`: the addresses of the place's
/// host.
Addresses addresses_to_serve(const StoreAtPort& place,
                             const MeetContext& context,
                             Addresses found) {
  // The user may name a link-local address, with its interface after a %.
  const std::vector<Interface> interfaces = own_interfaces(LinkLocal::kWith);
  const bool widen = leads_elsewhere_for_others(place, context.launch, found);
  std::erase_if(found, [&](const net::Address& a) { return !is_own(a, interfaces); });
  if (widen) {
    for (const net::Address& address :
         choose_addresses(own_interfaces(), context.config.interfaces, Reach::kOtherHosts)) {
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
              fmt::format("rank 0 serves the meeting, but \"{}\" is not an address of the machine "
                          "on which rank 0 runs: start rank 0 there, or name this machine ({})",
                          place.host,
                          fmt::join(own, ", ")));
}

std::vector<Fd> listen_on_all(const Addresses& addresses) {
  std::vector<Fd> listeners;
  for (const net::Address& address : addresses) listeners.push_back(net::listen_on(address));
  return listeners;
}

/// Serves the store. If the port is taken, joins a store of this job that is served there already.
/// An earlier meeting of the same processes may also hold the port and end at any moment, so both
/// steps are retried for 5 s.
std::shared_ptr<store::Store> serve(const Addresses& addresses, const MeetContext& context) {
  constexpr auto kLimit = std::chrono::seconds(5);
  constexpr auto kTry = std::chrono::milliseconds(500);
  constexpr auto kBetweenTries = std::chrono::milliseconds(20);
  const Deadline limit = context.deadline.within(kLimit);
  while (true) {
    try {
      auto host = std::make_shared<Host>(listen_on_all(addresses), context);
      return {host, host->client.get()};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kResource || limit.passed()) throw;
    }
    try {
      return connect_to_store(addresses, context, limit.within(kTry));
    } catch (const Error&) {  // another job, or a server that has ended meanwhile
      std::this_thread::sleep_for(kBetweenTries);
    }
  }
}

/// Retries until rank 0 serves, unless its process ends first. If a process accepts the connection
/// but does not answer, the last attempt waits for it until the deadline, without more retries.
std::shared_ptr<store::Store> connect_while_rank_0_lives(const Addresses& addresses,
                                                         const MeetContext& context) {
  while (context.ended.are_noted()) {
    const Deadline slice = context.deadline.within(kLookForEndsEvery);
    try {
      return connect_to_store(addresses, context, slice);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kTimeout) break;
      const bool is_just_not_there = error.kind() == ErrorKind::kPeerLost && slice.passed();
      if (!is_just_not_there || context.deadline.passed()) throw;
    }
    context.ended.check(kRank0, "served the meeting");
  }
  return connect_to_store(addresses, context, context.deadline);
}

/// The message of a failed connection, with the place that the user knows.
std::string message_with(const std::string& place,
                         const net::Address& address,
                         const Error& error) {
  std::string text(error.message());
  if (!address.is_unix()) return text;
  const std::string own = address.to_string();
  auto found = text.find(own);
  while (found != std::string::npos) {
    text.replace(found, own.size(), place);
    found = text.find(own, found + place.size());
  }
  return text;
}

std::shared_ptr<store::Store> join(const Addresses& addresses,
                                   const std::string& place,
                                   const MeetContext& context) {
  const Rank self = context.launch.identity.rank;
  const TimePoint begin = Clock::now();
  try {
    return connect_while_rank_0_lives(addresses, context);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kTimeout) {
      throw Error(ErrorKind::kTimeout,
                  fmt::format("rank {} connected to {}, where rank 0 serves the meeting, but gets "
                              "no answer: {}; check whether rank 0's process is stopped, and "
                              "whether another program uses this port",
                              self,
                              place,
                              message_with(place, addresses.front(), error)));
    }
    if (error.kind() != ErrorKind::kPeerLost) throw;
    context.ended.check(kRank0, "served the meeting");
    const bool is_near = addresses.front().is_unix();
    const std::chrono::duration<double> tried = Clock::now() - begin;
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("rank {} cannot reach rank 0 at {}, and has tried for {:.1f} s: {}; check "
                    "whether rank 0 runs{}",
                    self,
                    place,
                    tried.count(),
                    message_with(place, addresses.front(), error),
                    is_near ? ""
                            : ", whether MASTER_ADDR and MASTER_PORT are the same for all ranks, "
                              "whether a firewall blocks the port, and whether this machine has a "
                              "route to that address (peal run --rdzv-endpoint HOST:PORT sets "
                              "another address)"));
  }
}

/// Without a secret, every program that can reach the port can join the job. So this rejects an
/// address that other machines can reach, unless the user waives the secret.
void check_secrecy(const Addresses& addresses, const MeetContext& context) {
  const Config& config = context.config;
  const auto open = std::ranges::find_if(
      addresses, [](const net::Address& address) { return !address.is_loopback(); });
  if (open == addresses.end() || !config.secret.empty()) return;
  if (config.secrecy == Secrecy::kRequired) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the ranks meet at {}, which other machines can reach, without a "
                            "secret: give all ranks the same PEAL_SECRET or PEAL_SECRET_FILE, or "
                            "set PEAL_INSECURE=on if nobody else can use this network",
                            open->to_string()));
  }
  context.report(
      fmt::format("the ranks meet at {} without a secret, as PEAL_INSECURE says: every program "
                  "that can reach this address can join the job",
                  open->to_string()));
}

struct Open {
  const MeetContext& context;

  std::shared_ptr<store::Store> operator()(const NoStore&) const {
    return store::make_memory_store();
  }

  std::shared_ptr<store::Store> operator()(const StoreInFile& place) const {
    return store::open_file_store(place.path,
                                  {context.launch.identity.world_size, context.config.timeout},
                                  context.deadline,
                                  context.interrupt);
  }

  std::shared_ptr<store::Store> operator()(const StoreAtSocket& place) const {
    const net::Address address = net::Address::abstract_unix(place.name);
    if (is_rank_0()) return serve({address}, context);
    if (place.given.empty()) return join({address}, address.to_string(), context);
    return join({address}, place.given, context);
  }

  std::shared_ptr<store::Store> operator()(const StoreAtPort& place) const {
    Addresses found = resolve_patiently(place, context);
    check_scopes(place, found);
    if (is_rank_0()) found = addresses_to_serve(place, context, std::move(found));
    check_secrecy(found, context);
    if (is_rank_0()) return serve(found, context);
    return join(found, fmt::format("{}:{}", bracketed(place.host), place.port), context);
  }

  bool is_rank_0() const { return context.launch.identity.rank == 0; }
};

}  // namespace

std::shared_ptr<store::Store> open_store(const StoreLocation& place, const MeetContext& context) {
  return std::visit(Open{context}, place);
}

}  // namespace peal::rendezvous
