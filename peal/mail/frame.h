// The frames of the mail channel: whole messages, the frames of a rendezvous (offer, accept, data),
// credit for whole messages, and notifications about the group.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::mail {

struct Frame {
  enum class Kind : std::uint8_t {
    kEager = 1,  // a message with its payload; `id` is the number of its offer, if it was offered
    kOffer,      // a message that waits at its sender: it is large, or the bound is reached
    kPlaced,     // an offer of a message that lies in the sender's arena, at `place`
    kAccept,     // answers kOffer: the receive is there, send the message
    kData,       // a piece of the payload of an accepted message
    kTaken,      // answers kPlaced: the receiver has copied the message
    kAbort,      // the group has failed: the payload is the Error
    kLeave,      // the sender leaves the group: the payload is its Departure, one byte
    kProgressReport,  // the sender waits for the receiver: the payload is an engine::ProgressReport
                      // (engine/progress_report.h)
    kCredit,  // gives back credit: `count` messages of kEager, `id` bytes in all, were received
  };
  static constexpr std::size_t kSize = 32;

  Kind kind = Kind::kEager;
  DType dtype{};            // of a message or its offer; otherwise 0
  Tag tag = {};             // of a message or its offer
  Elements count = {};      // of a message or its offer: of the whole; kCredit: number of messages
  std::uint64_t id = 0;     // the number of an offered message, from 1 on; kCredit: bytes
  Bytes payload = {};       // the bytes that follow the header
  std::uint64_t place = 0;  // kPlaced, instead of a payload: an ArenaOffset

  std::array<std::byte, kSize> encode() const;
  /// Whether the frame announces a message that comes later.
  bool is_offer() const { return kind == Kind::kOffer || kind == Kind::kPlaced; }
  /// Nothing if these bytes are not a frame, or announce a payload that the kind cannot have.
  static std::optional<Frame> decode(std::span<const std::byte, kSize> bytes);

  friend bool operator==(const Frame&, const Frame&) = default;
};

/// The largest message that is sent whole, without an offer. The receiver keeps it until its
/// receive.
inline constexpr Bytes kEagerLimit = 16_KiB;
/// The largest payload of a kData frame.
inline constexpr Bytes kDataPiece = 256_KiB;
/// The largest payload of a kProgressReport frame.
inline constexpr Bytes kProgressReportLimit = 64_B;

}  // namespace peal::mail
