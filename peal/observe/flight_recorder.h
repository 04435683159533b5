// The last operations of a rank, to answer why a job has failed: which operation the rank was in,
// since when, and which ranks it waited for. The record is a mapped file, so that it survives any
// end of the process; or memory, which only `current` reads. `init` makes one recorder for a rank,
// the native backend writes to it, and `flight_file.h` reads the file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/observe/flight_layout.h"
#include "peal/observe/name_table.h"

namespace peal::observe {

struct RecorderOptions {
  Rank rank = 0;  // in the world, like all ranks here
  int world_size = 1;
  std::string job = {};
  std::vector<std::string_view> algorithms =
      {};  // their names, indexed by OperationKind::algorithm
  /// The file; an earlier file of this user is replaced. Empty: the record is in memory.
  std::string path = {};
  // How many groups and operations the record has room for. `operations` is a power of two.
  std::size_t groups = 256;
  std::size_t operations = 4096;
};

/// Threads: any number at once.
class FlightRecorder final {
 public:
  /// How an operation has ended.
  enum class Ending : std::uint8_t { kWell, kFailed };

  /// Where an operation is recorded. Valid only for the recorder that returned it. A default
  /// constructed Slot refers to no operation, and recording to it does nothing.
  class Slot {
   public:
    Slot() = default;

   private:
    friend class FlightRecorder;
    Slot(OperationRecord* record, std::uint64_t ordinal) : record_(record), ordinal_(ordinal) {}
    /// Another operation uses the place now, because no other place was free.
    bool is_lost() const {
      return record_ == nullptr || record_->stamp.load(std::memory_order_relaxed) >> 16 != ordinal_;
    }

    OperationRecord* record_ = nullptr;
    std::uint64_t ordinal_ = 0;
  };

  /// Creates the record, and the file's folder if only the folder is missing.
  /// Errors: resource, if no room is left or the file cannot be created.
  /// Cost: 50 us, and 430 KB.
  static std::shared_ptr<FlightRecorder> make(const RecorderOptions& options);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// Returns the number by which operations refer to the group. The first group is the world.
  std::uint8_t add_group(std::string_view name, std::span<const Rank> ranks) noexcept;
  /// Records that no thread of the program waits in the group's operations.
  void is_background(std::uint8_t group) noexcept;

  /// Records that an operation begins. `sequence` counts the collectives of the group and is the
  /// same on all its ranks. For a message, `sequence` is the tag. An operation that is still under
  /// way keeps its place as long as another place is free.
  /// Cost: 25 ns.
  Slot begin(const OperationKind& kind, std::uint64_t sequence, Elements count) noexcept;
  /// Records an operation that ended as soon as it began.
  /// Cost: 20 ns.
  void note(const OperationKind& kind, std::uint64_t sequence, Elements count) noexcept;

  /// Records that the operation got past waiting for peers for the first time.
  void note_progress(const Slot& place) noexcept;
  /// Records that the operation waits for `rank`, and has waited for `waited` cycles before. Call
  /// it off the fast path: it also renews the clock, which shows until when the rank was alive.
  void waits_for(const Slot& place, Rank rank, std::uint64_t waited) noexcept;
  /// Records that the operation has waited for `waited` cycles in all; keeps the last waited-for
  /// rank.
  void has_waited(const Slot& place, std::uint64_t waited) noexcept;
  /// Cost: 10 ns.
  void end(const Slot& place, Ending ending) noexcept;

  /// Operations by name.
  NameTable& names() { return names_; }

  /// Records the first error in any group; later errors are not recorded.
  void failed(std::uint8_t group, const Error& cause) noexcept;
  /// Records that the rank leaves the world, or is about to; later calls are not recorded.
  void left(Departure departure) noexcept;

  /// The latest operation of the group that has begun and not ended, for error texts:
  /// The operation in flight: "all_reduce #12 (sum of 1000 f32)". If the group has operations by
  /// name, their names. Empty if no operation is in flight, and in a background group.
  /// Cost: a look at each operation of the record.
  std::string current(std::uint8_t group) const;

 private:
  FlightRecorder(const RecorderOptions& options, std::byte* memory, std::size_t size);

  OperationRecord& take_place(std::uint64_t& ordinal) noexcept;
  void renew_clock() noexcept;

  std::byte* const memory_;
  const std::size_t size_;
  FlightHeader& header_;
  const std::span<GroupRecord> groups_;
  const std::span<OperationRecord> ring_;
  NameTable names_;
  std::atomic<std::uint32_t> groups_added_ = 0;
  std::atomic<std::uint32_t> renewals_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::atomic<bool> has_left_ = false;
  alignas(64) std::atomic<std::uint64_t> begun_ = 0;  // operations
};

}  // namespace peal::observe
