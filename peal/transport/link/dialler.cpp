#include "peal/transport/link/dialler.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;

/// How long one address is tried before the next; doubles from round to round. Other hosts may have
/// the same address (containers' bridges): then another process answers, or none.
constexpr milliseconds kFirstAttempt{500};
constexpr milliseconds kLongestAttempt{30'000};
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{250};

/// The errors of the attempts at the addresses of one rank.
struct Failures {
  enum class At : unsigned char { kNobody, kSomebody };  // which end answered before the error

  void add(const net::Address& address, const Error& error, At at) {
    texts.push_back(fmt::format("{}: {}", address.to_string(), error.message()));
    const bool is_fixable =
        error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kMismatch;
    // An error that the user can fix is worth more than a refusal at another address.
    if (is_fixable) fixable_kind = error.kind();
    // Retries cannot help here: a wrong secret stays wrong, and a listener that is gone stays gone.
    hopeless &= is_fixable || (error.kind() == ErrorKind::kPeerLost && at == At::kNobody);
  }

  ErrorKind kind() const {
    if (fixable_kind) return *fixable_kind;
    return hopeless ? ErrorKind::kPeerLost : ErrorKind::kTimeout;
  }

  std::vector<std::string> texts;
  std::optional<ErrorKind> fixable_kind;
  bool hopeless = true;  // a retry cannot help
};

Error unreachable(const LinkPlan::Peer& peer, const Failures& failures) {
  return Error(failures.kind(),
               fmt::format("cannot reach {}: {}", peer.name, fmt::join(failures.texts, "; ")));
}

/// All steps after the connection was made.
std::unique_ptr<net::Stream> introduce(
    Fd fd, const LinkPlan& plan, const LinkKey& key, Deadline attempt, Deadline whole) {
  auto stream = net::shake_hands(std::move(fd),
                                 net::Role::kConnector,
                                 context_of(plan, key.peer),
                                 net::Hello{plan.self},
                                 attempt)
                    .stream;
  // From here on the acceptor works on this connection. If the dialler gave up early, the acceptor
  // would keep a connection that the dialler has closed.
  const std::array request = {static_cast<std::byte>(key.kind)};
  net::write_all(*stream, request, whole);
  std::array<std::byte, 1> answer{};
  net::read_all(*stream, answer, whole);
  if (answer[0] != kTaken) {
    throw Error(ErrorKind::kMismatch,
                "the rank there does not expect this connection; give all ranks the same "
                "PEAL_TRANSPORT, and each process its own rank");
  }
  return stream;
}

/// Whether the peer has closed its link to this rank or, without a link, does not listen any more.
bool has_left(const LinkPlan& plan, const Links& links, Rank peer, Deadline deadline) {
  for (const auto& [key, stream] : links) {
    if (key.peer == peer) return net::is_closed(stream->fd());
  }
  return is_gone(plan.peers.at(peer), deadline);
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
    attempt = std::min(attempt * 2, kLongestAttempt);
    pause = std::min(pause * 2, kLongestPause);
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
