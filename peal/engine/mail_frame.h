// The frames that travel on the mail channel: whole messages, or the three letters of a rendezvous
// (offer, accept, data), the receipt of whole messages, and what concerns the group as a whole.
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
    kEager = 1,  // a message with its payload; by the number `id` if it was offered before
    kOffer,      // a message that does not come uninvited: too large, or too many are there
    kPlaced,     // the same, for one that lies in the sender's arena: at `place`
    kAccept,     // to kOffer: its receive is there, send
    kData,       // a piece of its payload
    kTaken,      // to kPlaced: the receiver has copied it
    kAbort,      // the group has failed: `dtype` is the kind of error, the payload its text
    kFarewell,   // the sender leaves the group: `dtype` is its Departure
    kStanding,   // the sender waits for the receiver: its payload is a Standing (standing.h)
    kCredit,  // `count` messages of kEager, of `id` bytes together, were received: as many may come
  };
  static constexpr std::size_t kSize = 32;

  Kind kind = Kind::kEager;
  std::uint8_t dtype = 0;   // a DType; of kAbort an ErrorKind, of kFarewell a Departure
  Tag tag = {};             // of a message or its offer
  Elements count = {};      // of these, too: the whole message; of kCredit a number of messages
  std::uint64_t id = 0;     // from an offer on: which message, numbered by its sender from 1 on
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
