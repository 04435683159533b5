#include "peal/transport/dialler.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/handshake.h"
#include "peal/net/line.h"
#include "peal/net/socket.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How long one address is tried before the next; doubles from round to round. An address may be
/// one that other hosts have, too (containers' bridges), where somebody else answers or nobody.
constexpr milliseconds kFirstAttempt{500};
constexpr milliseconds kFirstPause{10};

/// What became of the attempts at the addresses of one rank.
struct Failures {
  enum class At : unsigned char { kNobody, kSomebody };  // who answered before the error

  void add(const net::Address& address, const Error& error, At at) {
    texts.push_back(fmt::format("{}: {}", address.to_string(), error.message()));
    const bool mendable = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kMismatch;
    // What is to be mended is worth more than that some other address refused.
    if (mendable) to_mend = error.kind();
    // Neither will a wrong secret become right, nor a listener come that is not there.
    hopeless &= mendable || (error.kind() == ErrorKind::kPeerLost && at == At::kNobody);
  }

  ErrorKind kind() const {
    if (to_mend) return *to_mend;
    return hopeless ? ErrorKind::kPeerLost : ErrorKind::kTimeout;
  }

  std::vector<std::string> texts;
  std::optional<ErrorKind> to_mend;
  bool hopeless = true;  // no use in trying again
};

Error unreachable(const LinkPlan::Peer& peer, const Failures& failures) {
  return Error(failures.kind(),
               fmt::format("cannot reach {}: {}", peer.name, fmt::join(failures.texts, "; ")));
}

/// Everything after the connection was made.
std::unique_ptr<net::Stream> introduce(
    Fd fd, const LinkPlan& plan, const LinkKey& key, Deadline attempt, Deadline whole) {
  auto stream = net::shake_hands(std::move(fd),
                                 net::Role::kConnector,
                                 context_of(plan, key.peer),
                                 net::Hello{plan.self},
                                 attempt)
                    .stream;
  // From here on the other end is at work on this connection: giving up early would leave it with a
  // connection that nobody has.
  const std::array request = {static_cast<std::byte>(key.kind)};
  net::write_all(*stream, request, whole);
  std::array<std::byte, 1> answer{};
  net::read_all(*stream, answer, whole);
  if (answer[0] != kTaken) {
    throw Error(ErrorKind::kMismatch,
                "it expects no such connection: give all ranks the same PEAL_TRANSPORT");
  }
  return stream;
}

}  // namespace

net::ProofContext context_of(const LinkPlan& plan, Rank acceptor) {
  net::ProofContext context = plan.context;
  context.purpose = fmt::format("{}/{}", plan.group, acceptor);
  return context;
}

void set_up(const LinkPlan& plan, int fd, const net::Address& address) {
  if (address.is_unix()) return;
  net::set_no_delay(fd);
  if (!plan.congestion.empty()) net::set_congestion_control(fd, plan.congestion);
}

std::unique_ptr<net::Stream> Dialler::dial(const LinkKey& key, Deadline deadline) {
  const LinkPlan::Peer& peer = plan_.peers.at(key.peer);
  milliseconds attempt = kFirstAttempt;
  milliseconds pause = kFirstPause;
  while (true) {
    Failures failures;
    for (std::size_t i = 0; i < peer.addresses.size(); ++i) {
      const std::size_t index = (favourite_ + i) % peer.addresses.size();
      const net::Address& address = peer.addresses[index];
      auto at = Failures::At::kNobody;
      try {
        const Deadline until = deadline.within(attempt);
        Fd fd = net::connect_to(address, until);
        at = Failures::At::kSomebody;
        set_up(plan_, fd.get(), address);
        auto stream = introduce(std::move(fd), plan_, key, until, deadline);
        favourite_ = index;
        return stream;
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kResource) throw;
        failures.add(address, error, at);
      }
    }
    if (failures.hopeless || deadline.passed()) throw unreachable(peer, failures);
    std::this_thread::sleep_until(deadline.within(pause).at());
    attempt *= 2;
    pause *= 2;
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
