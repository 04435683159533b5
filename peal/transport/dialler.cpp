#include "peal/transport/dialler.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How long one address is tried before the next; doubles from round to round. An address may be
/// one that other hosts have, too (containers' bridges), where somebody else answers or nobody.
constexpr milliseconds kFirstAttempt{1000};
constexpr milliseconds kPause{20};

/// What became of the attempts at the addresses of one rank.
struct Failures {
  void add(const net::Address& address, const Error& error) {
    texts.push_back(fmt::format("{}: {}", address.to_string(), error.message()));
    wrong_secret |= error.kind() == ErrorKind::kUsage;
  }

  std::vector<std::string> texts;
  bool wrong_secret = false;
  bool final = true;  // no use in trying again
};

Error unreachable(const LinkPlan::Peer& peer, const Failures& failures) {
  const ErrorKind kind = failures.wrong_secret ? ErrorKind::kUsage
                         : failures.final      ? ErrorKind::kPeerLost
                                               : ErrorKind::kTimeout;
  return Error(
      kind,
      fmt::format("cannot reach {}: {}",
                  peer.name,
                  failures.texts.empty() ? "it listens nowhere that this rank can use"
                                         : fmt::format("{}", fmt::join(failures.texts, "; "))));
}

/// Everything after the connection was made.
void introduce(int fd, const LinkPlan& plan, const LinkKey& key, Deadline attempt, Deadline whole) {
  const net::Hello hello = net::prove(
      fd, net::Role::kConnector, context_of(plan, key.peer), net::Hello{plan.self}, attempt);
  if (hello.rank != key.peer) {
    throw Error(ErrorKind::kUsage, fmt::format("rank {} answers there", hello.rank));
  }
  // From here on the other end is at work on this connection: giving up early would leave it with a
  // connection that nobody has.
  const std::array request = {static_cast<std::byte>(key.kind)};
  net::write_all(fd, request, whole);
  std::array<std::byte, 1> answer{};
  net::read_all(fd, answer, whole);
  if (answer[0] != kTaken) throw Error(ErrorKind::kUsage, "what answers there speaks nonsense");
}

}  // namespace

net::ProofContext context_of(const LinkPlan& plan, Rank acceptor) {
  net::ProofContext context = plan.context;
  context.purpose = fmt::format("{}/{}", plan.group, acceptor);
  return context;
}

Fd dial(const LinkPlan& plan, const LinkKey& key, Deadline deadline) {
  const LinkPlan::Peer& peer = plan.peers.at(key.peer);
  milliseconds attempt = kFirstAttempt;
  while (true) {
    Failures failures;
    for (const net::Address& address : peer.addresses) {
      bool connected = false;
      try {
        const Deadline until = deadline.within(attempt);
        Fd fd = net::connect_to(address, until);
        connected = true;
        if (!address.is_unix()) net::set_no_delay(fd.get());
        introduce(fd.get(), plan, key, until, deadline);
        return fd;
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kResource) throw;
        failures.add(address, error);
        const bool refused = !connected && error.kind() == ErrorKind::kPeerLost;
        failures.final &= refused || error.kind() == ErrorKind::kUsage;
      }
    }
    if (failures.final || deadline.passed()) throw unreachable(peer, failures);
    std::this_thread::sleep_until(deadline.within(kPause).at());
    attempt *= 2;
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

}  // namespace peal::transport
