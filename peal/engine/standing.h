// Where a rank stands that has been blocked for a while, as it tells those whom it waits for: what
// goes before an operation's bytes tells nobody who expects none, and so ranks in different
// operations could wait for each other until their deadlines. Sent as mail (mail_frame.h), judged
// by `History`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/engine/fingerprint.h"

namespace peal::engine {

/// A value.
struct Standing {
  static constexpr std::size_t kSize = 48;

  Fingerprint fingerprint;   // of the operation that the rank is in
  std::uint64_t before = 0;  // the `detail` of the one before it

  std::array<std::byte, kSize> encode() const;
  /// Nothing if these are not the bytes of one.
  static std::optional<Standing> decode(std::span<const std::byte> bytes);

  friend bool operator==(const Standing&, const Standing&) = default;
};

/// The last operations that this rank has entered. Threads: one at a time.
class History {
 public:
  /// How far back it goes.
  static constexpr std::size_t kLength = 64;

  /// The operation that was entered last; all zero before the first.
  const Fingerprint& last() const { return entered_[last_ % kLength]; }
  /// Where the next one is to be written; then it is the last. Its sequence number is one more.
  Fingerprint& next() { return entered_[++last_ % kLength]; }

  Standing standing() const { return {last(), entered_[(last_ - 1) % kLength].detail}; }

  enum class Judgement : std::uint8_t {
    kAgrees,   // or it is too long ago to say
    kTooSoon,  // the peer is ahead: ask again when this rank gets there
  };
  /// Throws Error(mismatch) where the peer's operation, or one before it, was another here.
  Judgement judge(Rank self, Rank peer, const Standing& theirs) const;

 private:
  std::array<Fingerprint, kLength> entered_{};
  std::uint64_t last_ = 0;  // its sequence number
};

}  // namespace peal::engine
