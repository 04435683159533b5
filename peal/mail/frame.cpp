#include "peal/mail/frame.h"

#include "peal/base/error_bytes.h"
#include "peal/base/serialize.h"

namespace peal::mail {
namespace {

constexpr std::uint16_t kFrameMagic = 0x6d70;  // "pm"

/// The largest payload of a frame of this kind.
Bytes payload_limit(const Frame& frame) {
  switch (frame.kind) {
    case Frame::Kind::kEager:
      return kEagerLimit;
    case Frame::Kind::kData:
      return kDataPiece;
    case Frame::Kind::kAbort:
      return kErrorLimit;
    case Frame::Kind::kProgressReport:
      return kProgressReportLimit;
    case Frame::Kind::kLeave:
      return 1_B;
    case Frame::Kind::kOffer:
    case Frame::Kind::kPlaced:
    case Frame::Kind::kAccept:
    case Frame::Kind::kTaken:
    case Frame::Kind::kCredit:
      return 0_B;
  }
  return Bytes(-1);  // no such kind
}

/// Whether the payload of a whole message matches its count and type. For kCredit: whether that
/// number of small messages can have that many bytes.
bool is_consistent(const Frame& frame) {
  if (frame.kind == Frame::Kind::kCredit) {
    const auto limit = static_cast<std::uint64_t>(kEagerLimit.value);
    return frame.count.value > 0 && frame.count.value <= INT64_MAX / kEagerLimit.value &&
           frame.id <= static_cast<std::uint64_t>(frame.count.value) * limit;
  }
  if (frame.kind != Frame::Kind::kEager && !frame.is_offer()) return true;
  const Bytes element = size_of(frame.dtype);
  if (element.value == 0 || frame.count.value < 0 ||
      frame.count.value > INT64_MAX / element.value) {
    return false;
  }
  return frame.is_offer() || element * frame.count.value == frame.payload;
}

}  // namespace

std::array<std::byte, Frame::kSize> Frame::encode() const {
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

std::optional<Frame> Frame::decode(std::span<const std::byte, kSize> bytes) {
  Unpacker unpacker(bytes);
  if (unpacker.get<std::uint16_t>() != kFrameMagic) return std::nullopt;
  Frame frame;
  frame.kind = Kind{unpacker.get<std::uint8_t>()};
  frame.dtype = DType{unpacker.get<std::uint8_t>()};
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

}  // namespace peal::mail
