#include "peal/engine/mail_frame.h"

#include "peal/engine/pack.h"

namespace peal::engine {
namespace {

constexpr std::uint16_t kFrameMagic = 0x6d70;  // "pm"

/// What a payload may be at most, for a frame of this kind.
Bytes payload_limit(const MailFrame& frame) {
  switch (frame.kind) {
    case MailFrame::Kind::kEager:
      return kEagerLimit;
    case MailFrame::Kind::kData:
      return kDataPiece;
    case MailFrame::Kind::kAbort:
      return kAbortLimit;
    case MailFrame::Kind::kStanding:
      return kStandingLimit;
    case MailFrame::Kind::kOffer:
    case MailFrame::Kind::kPlaced:
    case MailFrame::Kind::kAccept:
    case MailFrame::Kind::kTaken:
    case MailFrame::Kind::kFarewell:
    case MailFrame::Kind::kCredit:
      return 0_B;
  }
  return Bytes(-1);  // no such kind
}

/// Whether the payload of a whole message matches its count and type. Of kCredit: whether so many
/// small messages can have so many bytes.
bool is_consistent(const MailFrame& frame) {
  if (frame.kind == MailFrame::Kind::kCredit) {
    const auto limit = static_cast<std::uint64_t>(kEagerLimit.value);
    return frame.count.value > 0 && frame.count.value <= INT64_MAX / kEagerLimit.value &&
           frame.id <= static_cast<std::uint64_t>(frame.count.value) * limit;
  }
  if (frame.kind != MailFrame::Kind::kEager && !frame.is_offer()) return true;
  const Bytes element = size_of(DType{frame.dtype});
  if (element.value == 0 || frame.count.value < 0 ||
      frame.count.value > INT64_MAX / element.value) {
    return false;
  }
  return frame.is_offer() || element * frame.count.value == frame.payload;
}

}  // namespace

std::array<std::byte, MailFrame::kSize> MailFrame::encode() const {
  std::array<std::byte, kSize> bytes{};
  Packer(bytes)
      .put(kFrameMagic)
      .put(kind)
      .put(dtype)
      .put(tag.value)
      .put(count.value)
      .put(id)
      .put(kind == Kind::kPlaced ? place : static_cast<std::uint64_t>(payload.value));
  return bytes;
}

std::optional<MailFrame> MailFrame::decode(std::span<const std::byte, kSize> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.get<std::uint16_t>() != kFrameMagic) return std::nullopt;
  MailFrame frame;
  frame.kind = Kind{unpacker.get<std::uint8_t>()};
  frame.dtype = unpacker.get<std::uint8_t>();
  frame.tag = Tag{unpacker.get<std::int32_t>()};
  frame.count = Elements(unpacker.get<std::int64_t>());
  frame.id = unpacker.get<std::uint64_t>();
  const auto last = unpacker.get<std::uint64_t>();
  if (frame.kind == Kind::kPlaced) {
    frame.place = last;
  } else {
    frame.payload = Bytes(static_cast<std::int64_t>(last));
  }
  if (frame.payload < 0_B || frame.payload > payload_limit(frame) || !is_consistent(frame)) {
    return std::nullopt;
  }
  return frame;
}

}  // namespace peal::engine
