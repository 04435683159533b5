#include "peal/transport/link/dial.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
/// How often to try a unix listener whose queue is full.
constexpr milliseconds kFullQueue{1};

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

ErrorKind Dial::Failures::kind() const {
  if (fixable_kind) return *fixable_kind;
  return hopeless ? ErrorKind::kPeerLost : ErrorKind::kTimeout;
}

Dial::Dial(const LinkPlan& plan, const LinkKey& key, std::size_t first)
    : plan_(plan), key_(key), first_(first), attempt_(kFirstAttempt), pause_(kFirstPause) {}

std::unique_ptr<net::Stream> Dial::advance(TimePoint now) {
  while (now >= resume_) {
    try {
      if (auto stream = try_address(now)) return stream;
      // Once this rank has asked, the acceptor works on the connection. If this rank gave up, the
      // acceptor would keep a connection that this rank has closed.
      if (has_asked_ || now < attempt_ends_) return nullptr;
      throw too_slow();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kResource) throw;
      add_failure(error);
    }
    next_address(now);
  }
  return nullptr;
}

std::unique_ptr<net::Stream> Dial::try_address(TimePoint now) {
  const net::Address& to = peer().addresses[address()];
  if (!connecting_ && !handshake_ && !stream_) {
    attempt_ends_ = now + attempt_;
    is_answered_ = false;
    connecting_.emplace(to);
  }
  if (connecting_) {
    auto fd = connecting_->advance();
    if (!fd) return nullptr;
    is_answered_ = true;
    connecting_.reset();
    set_up(plan_, fd->get(), to);
    handshake_.emplace(std::move(*fd),
                       net::Role::kConnector,
                       context_of(plan_, key_.peer),
                       net::Hello{plan_.self});
  }
  if (handshake_) {
    auto welcome = handshake_->advance();
    if (!welcome) return nullptr;
    stream_ = std::move(welcome->stream);
    handshake_.reset();
  }
  return ask();
}

std::unique_ptr<net::Stream> Dial::ask() {
  const auto check = [&](const net::Moved& moved) {
    if (!moved.closed) return moved.bytes > 0_B;
    throw Error(ErrorKind::kPeerLost,
                fmt::format("{} closed the connection", net::peer_name(stream_->fd())));
  };
  if (!has_asked_) {
    const std::array request = {static_cast<std::byte>(key_.kind)};
    const std::array<std::span<const std::byte>, 1> pieces = {request};
    if (!check(stream_->try_write(pieces))) return nullptr;
    has_asked_ = true;
  }
  if (!stream_->try_flush()) return nullptr;
  std::array<std::byte, 1> answer{};
  if (!check(stream_->try_read(answer))) return nullptr;
  switch (static_cast<Answer>(answer[0])) {
    case Answer::kTaken:
      return std::move(stream_);
    case Answer::kNotNow:
      throw Error(ErrorKind::kTimeout,
                  "the rank there makes the connection itself, or later; give all ranks the same "
                  "PEAL_LINKED_AT_START");
    case Answer::kUnexpected:
      break;
  }
  throw Error(ErrorKind::kMismatch,
              "the rank there does not expect this connection; give all ranks the same "
              "PEAL_TRANSPORT, and each process its own rank");
}

Error Dial::too_slow() const {
  if (handshake_) return handshake_->too_slow();
  return Error(ErrorKind::kTimeout, "no answer in time");
}

void Dial::add_failure(const Error& error) {
  if (std::exchange(is_new_round_, false)) failures_ = {};
  const net::Address& to = peer().addresses[address()];
  failures_.texts.push_back(fmt::format("{}: {}", to.to_string(), error.message()));
  const bool is_fixable = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kMismatch;
  // An error that the user can fix is worth more than a refusal at another address.
  if (is_fixable) failures_.fixable_kind = error.kind();
  // Retries cannot help here: a wrong secret stays wrong, and a listener that is gone stays gone.
  failures_.hopeless &= is_fixable || (error.kind() == ErrorKind::kPeerLost && !is_answered_);
}

void Dial::next_address(TimePoint now) {
  connecting_.reset();
  handshake_.reset();
  stream_.reset();
  has_asked_ = false;
  if (++tried_ < peer().addresses.size()) return;
  if (failures_.hopeless) throw unreachable();
  tried_ = 0;
  is_new_round_ = true;
  resume_ = now + pause_;
  attempt_ = std::min(attempt_ * 2, kLongestAttempt);
  pause_ = std::min(pause_ * 2, kLongestPause);
}

pollfd Dial::entry() const {
  if (connecting_) return {connecting_->fd(), POLLOUT, 0};
  if (handshake_) return {handshake_->fd(), handshake_->interest(), 0};
  if (!stream_) return {-1, 0, 0};  // a pause
  const bool sends = !has_asked_ || stream_->has_unsent();
  return {stream_->fd(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0};
}

TimePoint Dial::due() const {
  if (has_asked_) return TimePoint::max();
  if (!connecting_ && !handshake_ && !stream_) return resume_;
  const bool is_full = connecting_ && connecting_->fd() < 0;
  return is_full ? std::min(attempt_ends_, Clock::now() + kFullQueue) : attempt_ends_;
}

Error Dial::unreachable() const {
  std::vector<std::string> texts = failures_.texts;
  ErrorKind kind = failures_.kind();
  if (texts.empty()) {  // the first attempt has not ended
    texts.push_back(
        fmt::format("{}: {}", peer().addresses[address()].to_string(), too_slow().message()));
    kind = ErrorKind::kTimeout;
  }
  const bool is_near = peer().addresses.front().is_unix();
  const bool has_advice = is_near || failures_.fixable_kind;
  return Error(kind,
               fmt::format("cannot reach {}: {}{}",
                           peer().name,
                           fmt::join(texts, "; "),
                           has_advice ? ""
                                      : "; check that the rank still runs, and that this machine "
                                        "has a route to its addresses (PEAL_INTERFACE on its host "
                                        "chooses them)"));
}

}  // namespace peal::transport
