// A message from a blocked rank to the ranks that it waits for: the operation that the rank is in.
// A fingerprint before an operation's bytes does not reach a rank that expects no bytes. Without
// this message, ranks in different operations could wait for each other until their deadlines. Sent
// as mail (mail/frame.h); `History` compares it with this rank's operations.
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
struct ProgressReport {
  static constexpr std::size_t kSize = 48;

  Fingerprint fingerprint;   // of the operation that the rank is in
  std::uint64_t before = 0;  // the `detail` of the previous operation

  std::array<std::byte, kSize> encode() const;
  /// Nothing if these are not the bytes of a ProgressReport.
  static std::optional<ProgressReport> decode(std::span<const std::byte> bytes);

  friend bool operator==(const ProgressReport&, const ProgressReport&) = default;
};

/// The last operations that this rank has entered. Threads: one at a time.
class History {
 public:
  /// How many operations it remembers.
  static constexpr std::size_t kLength = 64;

  /// The operation that was entered last; all fields are zero before the first.
  const Fingerprint& last() const { return entered_[last_ % kLength]; }
  /// The place of the next operation, which then is the last. Its sequence number is one higher.
  Fingerprint& next() { return entered_[++last_ % kLength]; }

  ProgressReport report() const { return {last(), entered_[(last_ - 1) % kLength].detail}; }

  enum class Judgement : std::uint8_t {
    kAgrees,   // also if the operation is too old to compare
    kTooSoon,  // the peer is ahead: compare again when this rank gets there
  };
  /// Compares. Throws Error(mismatch) if the peer's operation, or the one before it, was different
  /// on this rank.
  Judgement judge(Rank self, Rank peer, const ProgressReport& theirs) const;

 private:
  std::array<Fingerprint, kLength> entered_{};
  std::uint64_t last_ = 0;  // its sequence number
};

}  // namespace peal::engine
