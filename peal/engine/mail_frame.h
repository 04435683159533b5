// The frames that travel on the mail channel: whole messages, or the three letters of a rendezvous
// (offer, accept, data), and what concerns the group as a whole.
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
    kEager = 1,  // a message with its payload
    kOffer,      // a message too large to come uninvited
    kAccept,     // its receive is there: send
    kData,       // a piece of its payload
    kAbort,      // the group has failed: `dtype` is the kind of error, the payload its text
    kFarewell,   // the sender leaves the group: `dtype` is its Departure
  };
  static constexpr std::size_t kSize = 32;

  Kind kind = Kind::kEager;
  std::uint8_t dtype = 0;  // a DType; of kAbort an ErrorKind, of kFarewell a Departure
  Tag tag = {};            // of kEager and kOffer
  Elements count = {};     // of kEager and kOffer: the whole message
  std::uint64_t id = 0;    // of kOffer, kAccept and kData: which message, numbered by its sender
  Bytes payload = {};      // bytes that follow

  std::array<std::byte, kSize> encode() const;
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

}  // namespace peal::engine
