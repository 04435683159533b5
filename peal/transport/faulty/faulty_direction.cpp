#include "peal/transport/faulty/faulty_direction.h"

#include <algorithm>
#include <limits>

namespace peal::transport {
namespace {

constexpr Bytes kMostHeld = 4_MiB;
constexpr Bytes kEndless(std::numeric_limits<std::int64_t>::max());

/// A slow direction carries pieces of this duration: short enough for an even flow.
constexpr auto kPieceOf = std::chrono::milliseconds(5);

bool concerns(const LinkFault& fault, Rank from, Rank to, ChannelKind channel) {
  const bool forth = fault.from == from && fault.to == to;
  const bool back = fault.ways == LinkFault::Ways::kBoth && fault.from == to && fault.to == from;
  const auto only =
      channel == ChannelKind::kData ? LinkFault::Channels::kData : LinkFault::Channels::kMail;
  return (forth || back) &&
         (fault.channels == LinkFault::Channels::kBoth || fault.channels == only);
}

Bytes least(const std::optional<Bytes>& known, Bytes other) {
  return known ? std::min(*known, other) : other;
}

/// Never 0, so that a direction makes progress.
Bytes piece_of(Bytes per_second) { return std::max(1_B, per_second / (1000 / kPieceOf.count())); }

}  // namespace

DirectionFaults faults_of(std::span<const LinkFault> faults,
                          Rank from,
                          Rank to,
                          ChannelKind channel) {
  DirectionFaults all;
  for (const LinkFault& fault : faults) {
    if (!concerns(fault, from, to, channel)) continue;
    switch (fault.kind) {
      case LinkFault::Kind::kDelay:
        all.delay += fault.delay;
        break;
      case LinkFault::Kind::kSlow:
        all.per_second = least(all.per_second, fault.per_second);
        break;
      case LinkFault::Kind::kDrop:
        all.drop_after = least(all.drop_after, fault.after);
        break;
      case LinkFault::Kind::kCut:
        all.cut_after = least(all.cut_after, fault.after);
        break;
      case LinkFault::Kind::kCorrupt:
        all.corrupt.push_back(fault.after);
        break;
    }
  }
  return all;
}

Bytes FaultyDirection::limit() const {
  return std::min(faults_.drop_after.value_or(kEndless), faults_.cut_after.value_or(kEndless));
}

Bytes FaultyDirection::room() const { return kMostHeld - held_; }

void FaultyDirection::arrive(std::span<const std::byte> bytes, TimePoint now) {
  const Bytes size(static_cast<std::int64_t>(bytes.size()));
  const Bytes kept = std::clamp(limit() - arrived_, 0_B, size);
  Part part{{bytes.begin(), bytes.begin() + kept.value}, now + faults_.delay};
  for (const Bytes at : faults_.corrupt) {
    if (at < arrived_ || at >= arrived_ + kept) continue;
    part.bytes[static_cast<std::size_t>((at - arrived_).value)] ^= std::byte{0xff};
  }
  arrived_ += size;
  held_ += kept;
  if (kept > 0_B) parts_.push_back(std::move(part));
}

std::span<const std::byte> FaultyDirection::ready(TimePoint now) const {
  const auto at = ready_at();
  if (!at || now < *at) return {};
  const auto bytes = std::span(parts_.front().bytes).subspan(taken_);
  if (!faults_.per_second) return bytes;
  return bytes.first(
      std::min(bytes.size(), static_cast<std::size_t>(piece_of(*faults_.per_second).value)));
}

void FaultyDirection::take(Bytes bytes, TimePoint now) {
  held_ -= bytes;
  taken_ += static_cast<std::size_t>(bytes.value);
  if (taken_ == parts_.front().bytes.size()) {
    parts_.pop_front();
    taken_ = 0;
  }
  if (!faults_.per_second) return;
  const std::chrono::duration<double> lasts(static_cast<double>(bytes.value) /
                                            static_cast<double>(faults_.per_second->value));
  next_ = now + std::chrono::ceil<Duration>(lasts);
}

std::optional<TimePoint> FaultyDirection::ready_at() const {
  if (parts_.empty()) return std::nullopt;
  return std::max(parts_.front().due, next_);
}

FaultyDirection::State FaultyDirection::state() const {
  if (held_ > 0_B) return State::kOpen;
  const auto is_reached = [&](const std::optional<Bytes>& after) {
    return after && arrived_ >= *after && *after == limit();
  };
  if (is_reached(faults_.drop_after)) return State::kOpen;
  if (is_reached(faults_.cut_after)) return State::kCut;
  return ended_ ? State::kEnded : State::kOpen;
}

}  // namespace peal::transport
