// The frames of the mail channel: whole messages, the three frames of a rendezvous (offer, accept,
// data), credit for whole messages, and news that concerns the group as a whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::engine {

struct MailFrame {
  enum class Kind : std::uint8_t {
    kEager = 1,  // a message with its payload; `id` is the number of its offer, if it was offered
    kOffer,      // a message that waits at its sender: it is large, or the bound is reached
    kPlaced,     // the same, for one that lies in the sender's arena: at `place`
    kAccept,     // to kOffer: its receive is there, send
    kData,       // a piece of its payload
    kTaken,      // to kPlaced: the receiver has copied it
    kAbort,      // the group has failed: `dtype` is the kind of error, the payload its text
    kFarewell,   // the sender leaves the group: `dtype` is its Departure
    kStanding,   // the sender waits for the receiver: its payload is a Standing (standing.h)
    kCredit,  // `count` messages of kEager with `id` bytes in all were received: so many may follow
  };
  static constexpr std::size_t kSize = 32;

  Kind kind = Kind::kEager;
  std::uint8_t dtype = 0;   // a DType; of kAbort an ErrorKind, of kFarewell a Departure
  Tag tag = {};             // of a message or its offer
  Elements count = {};      // of these, too: the whole message; of kCredit a number of messages
  std::uint64_t id = 0;     // of an offered message: its number, from 1 on; of kCredit bytes
  Bytes payload = {};       // bytes that follow
  std::uint64_t place = 0;  // of kPlaced, in place of a payload: an ArenaOffset

  std::array<std::byte, kSize> encode() const;
  /// Whether it announces a message that has not come with it.
  bool is_offer() const { return kind == Kind::kOffer || kind == Kind::kPlaced; }
  /// Nothing if these bytes are no frame, or promise a payload that the kind cannot have.
  static std::optional<MailFrame> decode(std::span<const std::byte, kSize> bytes);

  friend bool operator==(const MailFrame&, const MailFrame&) = default;
};

/// Up to here a message is sent whole, uninvited; the receiver keeps it if no receive is there yet.
inline constexpr Bytes kEagerLimit = 16_KiB;
/// Payload of one kData frame.
inline constexpr Bytes kDataPiece = 256_KiB;
/// Longest text of a kAbort.
inline constexpr Bytes kAbortLimit = 4_KiB;
/// Longest payload of a kStanding.
inline constexpr Bytes kStandingLimit = 64_B;

}  // namespace peal::engine
