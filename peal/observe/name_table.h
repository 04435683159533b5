// The operations by name in a rank's flight record. The record keeps each operation from its
// submission until its end, and afterwards until another operation needs the place. FlightRecorder
// has a table.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "peal/observe/flight_layout.h"

namespace peal::observe {

/// Threads: any number at once.
class NameTable final {
 public:
  /// Where an operation is recorded.
  using Place = std::uint32_t;
  /// The operation is not recorded, because all places hold operations in flight.
  static constexpr Place kNone = ~Place{0};

  /// `records`: uninitialized memory.
  explicit NameTable(std::span<NameRecord, kNames> records) : records_(records) {}
  /// Initializes the memory.
  void clear() noexcept;

  /// Cost: 50 ns.
  Place submitted(std::uint8_t group, std::string_view text) noexcept;
  void started(Place place) noexcept;
  enum class Ending : std::uint8_t { kWell, kFailed };
  void ended(Place place, Ending ending) noexcept;

  /// The group's operations that have not ended, as text (names_text): those that have started; if
  /// no operation has started, all. Empty if all have ended.
  std::string in_flight(std::uint8_t group) const;

 private:
  Place take_place() noexcept;

  std::span<NameRecord, kNames> records_;
  std::array<std::atomic<std::uint64_t>, kNames / 64> taken_{};  // a bit for each place
  std::atomic<std::uint64_t> submitted_ = 0;                     // operations
};

}  // namespace peal::observe
