#include "peal/mail/eager_mail.h"

#include <algorithm>
#include <utility>

namespace peal::mail {
namespace {

/// The largest bound for one peer.
constexpr Bytes kPeerBound = 16_MiB;
/// The largest bound for all peers together.
constexpr Bytes kRankBound = 256_MiB;

/// Credit is given back when it reaches this part of the bound (a quarter). With smaller parts the
/// credit frames would cost more than the messages.
constexpr std::int64_t kSeldom = 4;
/// The same while the peer holds messages back. With smaller parts the credit would wake the peer
/// for each message.
constexpr std::int64_t kSoon = 64;

}  // namespace

Bytes eager_bound(int ranks) {
  return std::clamp(kRankBound / ranks, MessageCount{1, kEagerLimit}.cost(), kPeerBound);
}

// ---- sending

bool EagerSends::give_back(const MessageCount& received) {
  if (received.messages < 0 || received.messages > unreceived_.messages || received.bytes < 0_B ||
      received.bytes > unreceived_.bytes) {
    return false;
  }
  unreceived_.subtract(received);
  return true;
}

void EagerSends::hold(Held message) { held_.emplace(message.frame.id, std::move(message)); }

bool EagerSends::holds(const Ticket& ticket) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
    return &*held.second.ticket == &ticket;
  });
}

std::optional<EagerSends::Held> EagerSends::take(std::uint64_t id) {
  auto node = held_.extract(id);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

std::optional<EagerSends::Held> EagerSends::release() {
  if (!can_release()) return std::nullopt;
  Held message = std::move(held_.extract(held_.begin()).mapped());
  sent(Bytes(std::ssize(message.data)));
  return message;
}

bool EagerSends::post_held(FrameStream& stream) {
  Bytes posted = 0_B;
  while (posted < kDataPiece) {
    const std::optional<Held> message = release();
    if (!message) break;
    stream.post(message->frame, message->data, message->ticket);
    posted += Bytes(Frame::kSize) + message->frame.payload;
  }
  return true;
}

// ---- receiving

bool EagerReceives::came(Bytes payload) {
  const MessageCount message{1, payload};
  if (open_.messages > 0 && open_.cost() + message.cost() > bound_) return false;
  open_.add(message);
  return true;
}

std::optional<Matching::Position> EagerReceives::take_offer(std::uint64_t id) {
  const auto found = offers_.find(id);
  if (found == offers_.end()) return std::nullopt;
  const Matching::Position offer = found->second;
  offers_.erase(found);
  return offer;
}

bool EagerReceives::owes(const std::optional<Departure>& departure) const {
  if (taken_.messages == 0) return false;
  if (!offers_.empty()) return taken_ == open_ || taken_.cost() >= bound_ / kSoon;
  return !departure && taken_.cost() >= bound_ / kSeldom;
}

MessageCount EagerReceives::give_back() {
  open_.subtract(taken_);
  return std::exchange(taken_, {});
}

void EagerReceives::clear() {
  taken_ = {};
  offers_.clear();
}

}  // namespace peal::mail
