// Notes compound operations in the rank's flight record and in error texts. A compound operation
// consists of several operations of a group, as those of peal/named do.
#pragma once

#include <cstdint>
#include <string_view>

namespace peal {

/// Obtained from ProcessGroup::flight_notes. May outlive the group.
/// Threads: any number at once.
class FlightNotes {
 public:
  virtual ~FlightNotes() = default;

  /// Where an operation is noted.
  using Place = std::uint32_t;
  enum class Ending : std::uint8_t { kWell, kFailed };

  /// The operation is in flight: `allreduce "x"`. Notes the first 88 bytes of the text.
  /// Cost: 50 ns.
  virtual Place submitted(std::string_view text) noexcept = 0;
  /// All ranks have submitted the operation, and it begins.
  virtual void started(Place place) noexcept = 0;
  virtual void ended(Place place, Ending ending) noexcept = 0;

  /// No thread of the program waits in the operations of this group. So `peal why` shows neither
  /// these operations as the rank's work, nor their errors as the rank's errors.
  virtual void group_is_background() noexcept = 0;
};

}  // namespace peal
