#include "peal/transport/link/acceptor.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "peal/net/socket.h"

namespace peal::transport {
namespace {

net::AcceptLimits limits_for(std::size_t expected) {
  net::AcceptLimits limits;
  limits.half_open += expected;
  return limits;
}

}  // namespace

Acceptor::Acceptor(const LinkPlan& plan, std::size_t expected, Owner owner)
    : plan_(plan),
      owner_(std::move(owner)),
      listener_(fmt::format("rank {} of group {}", plan.self, plan.group)),
      accept_limiter_(limits_for(expected), listener_, plan.report) {}

std::size_t Acceptor::count_half_open() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pending_, [](const Incoming& pending) { return !pending.welcome; }));
}

bool Acceptor::may_accept() const {
  return accept_limiter_.may_accept(count_half_open(), Clock::now());
}

void Acceptor::add_entries(std::vector<pollfd>& entries) const {
  const bool accepts = may_accept();
  for (const int listener : plan_.listeners) {
    entries.push_back({accepts ? listener : -1, POLLIN, 0});  // poll ignores -1
  }
  for (const Incoming& pending : pending_) {
    entries.push_back(
        {pending.fd(), pending.welcome ? short{POLLIN} : pending.handshake.interest(), 0});
  }
}

TimePoint Acceptor::due() const {
  const TimePoint accepts_from = accept_limiter_.pause_until();
  TimePoint due = Clock::now() < accepts_from ? accepts_from : TimePoint::max();
  const std::size_t half_open = count_half_open();
  for (const Incoming& pending : pending_) {
    due = std::min(due, pending.since + time_for(pending, half_open));
  }
  return due;
}

Timeout Acceptor::time_for(const Incoming& pending, std::size_t half_open) const {
  return accept_limiter_.proof_timeout(pending.welcome ? 0 : half_open);
}

void Acceptor::advance() {
  welcome();
  const std::size_t half_open = count_half_open();
  std::erase_if(pending_, [&](Incoming& pending) { return advance(pending, half_open); });
}

void Acceptor::welcome() {
  constexpr int kMost = 256;
  bool some = true;
  for (int i = 0; i < kMost && some; ++i) {
    some = false;
    for (const int listener : plan_.listeners) some |= may_accept() && welcome_from(listener);
  }
}

bool Acceptor::welcome_from(int listener) {
  const TimePoint now = Clock::now();
  std::optional<Fd> fd;
  try {
    fd = net::accept_from(listener, Deadline(now));
  } catch (const Error&) {
    accept_limiter_.accept_failed(now);
  }
  if (fd) take_in(std::move(*fd), now);
  return fd.has_value();
}

void Acceptor::take_in(Fd fd, TimePoint now) {
  net::Address from;
  try {
    net::check_neighbour(fd.get());
    from = net::peer_address(fd.get());
    set_up(plan_, fd.get(), from);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) accept_limiter_.closed_unread(error.message(), now);
    return;  // else the connector has closed the connection
  }
  if (accept_limiter_.is_paused(from, now)) return;
  pending_.push_back({from,
                      net::Handshake(std::move(fd),
                                     net::Role::kAcceptor,
                                     context_of(plan_, plan_.self),
                                     net::Hello{plan_.self}),
                      now,
                      std::nullopt});
}

bool Acceptor::advance(Incoming& pending, std::size_t half_open) {
  try {
    if (!pending.welcome) pending.welcome = pending.handshake.advance();
    if (pending.welcome && take(*pending.welcome)) return true;
    if (Clock::now() < pending.since + time_for(pending, half_open)) return false;
    if (!pending.welcome) throw pending.handshake.too_slow();
    throw Error(ErrorKind::kTimeout,
                fmt::format("{} has not said which link it is for", net::peer_name(pending.fd())));
  } catch (const Error& error) {
    drop(pending, error);
    return true;
  }
}

void Acceptor::drop(const Incoming& pending, const Error& error) {
  if (pending.welcome) {
    plan_.report(fmt::format("dropped a connection to {}: {}", listener_, error.message()));
  } else if (error.kind() != ErrorKind::kPeerLost || pending.handshake.has_proof()) {
    accept_limiter_.dropped(pending.from, error.message(), Clock::now());
  }  // else the connector hung up: to check that this rank lives (arrivals.cpp), or to redial
}

bool Acceptor::take(net::Welcome& pending) {
  std::array<std::byte, 1> request{};
  const net::Moved moved = pending.stream->try_read(request);
  if (moved.closed) return true;
  if (moved.bytes == 0_B) return false;
  const LinkKey key{pending.other.rank, static_cast<LinkKind>(request[0])};
  const Answer answer = owner_.decide(key);
  const std::array reply = {static_cast<std::byte>(answer)};
  const std::array<std::span<const std::byte>, 1> pieces = {reply};
  if (pending.stream->try_write(pieces).bytes == 0_B) return true;
  if (answer == Answer::kTaken) owner_.take(key, std::move(pending.stream));
  if (answer != Answer::kUnexpected) return true;
  throw Error(
      ErrorKind::kMismatch,
      fmt::format(
          "rank {} has connected with a link that this rank does not expect: the ranks do not "
          "agree on how they reach each other; give all ranks the same PEAL_TRANSPORT, and each "
          "process its own rank",
          key.peer));
}

}  // namespace peal::transport
