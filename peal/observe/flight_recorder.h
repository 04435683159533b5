// The last operations of a rank, for the question why a job has failed: which operation it was in,
// since when, and for whom it waited. In a file that it maps, so that the record survives the
// process however it ends; or in memory, where only `current` reads it. `init` makes one for a
// rank, the native backend writes it, `flight_file.h` reads it.
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

namespace peal::observe {

struct RecorderOptions {
  Rank rank = 0;  // in the world, as all ranks here
  int world_size = 1;
  std::string job = {};
  std::vector<std::string_view> algorithms =
      {};  // their names, by the numbers that operations give
  /// Of the file; a former one of this user's is replaced. Empty: in memory.
  std::string path = {};
  // How many the record has room for; operations: a power of two.
  std::size_t groups = 256;
  std::size_t operations = 4096;
};

/// Threads: any number at once.
class FlightRecorder final {
 public:
  /// How an operation has ended.
  enum class Ending : std::uint8_t { kWell, kFailed };

  /// Where an operation is recorded; of the recorder that has given it. One that was made by
  /// default stands for none.
  class Place {
   public:
    Place() = default;

   private:
    friend class FlightRecorder;
    Place(OperationRecord* record, std::uint64_t ordinal) : record_(record), ordinal_(ordinal) {}
    /// Another operation has it by now: there was no other place.
    bool is_lost() const {
      return record_ == nullptr || record_->stamp.load(std::memory_order_relaxed) >> 16 != ordinal_;
    }

    OperationRecord* record_ = nullptr;
    std::uint64_t ordinal_ = 0;
  };

  /// Makes the file's folder too, if only that is missing.
  /// Errors: resource, where there is no room or the file cannot be made.
  /// Cost: 50 us, and 400 KB.
  static std::shared_ptr<FlightRecorder> make(const RecorderOptions& options);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// Returns the number by which operations name the group. The first is the world.
  std::uint8_t add_group(std::string_view name, std::span<const Rank> ranks) noexcept;

  /// An operation begins. `sequence` counts the collectives of the group, the same on all its
  /// ranks; of a message it is the tag. What is still under way keeps its place where there is
  /// another. Cost: 25 ns.
  Place begin(const OperationKind& kind, std::uint64_t sequence, Elements count) noexcept;
  /// One that was over as soon as it began. Cost: 20 ns.
  void note(const OperationKind& kind, std::uint64_t sequence, Elements count) noexcept;

  /// It got past waiting for peers for the first time.
  void got_past_waiting(const Place& place) noexcept;
  /// It waits for `rank`, as it did before for so many cycles in all. For who has time: it renews
  /// the clock too, which says for how long the rank was seen alive.
  void waits_for(const Place& place, Rank rank, std::uint64_t waited) noexcept;
  /// It has waited for so many cycles in all; last for whom it said.
  void has_waited(const Place& place, std::uint64_t waited) noexcept;
  /// Cost: 10 ns.
  void end(const Place& place, Ending ending) noexcept;

  /// The first thing that went wrong in any group; what comes later is not recorded.
  void failed(std::uint8_t group, const Error& cause) noexcept;
  /// The rank leaves the world, or is about to; what comes later is not recorded.
  void left(Departure departure) noexcept;

  /// The latest operation of the group that has begun and not ended, for errors: "all_reduce #12
  /// (sum of 1000 f32)"; empty if there is none. Cost: a look at each operation of the record.
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
  std::atomic<std::uint32_t> groups_added_ = 0;
  std::atomic<std::uint32_t> renewals_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::atomic<bool> has_left_ = false;
  alignas(64) std::atomic<std::uint64_t> begun_ = 0;  // operations
};

}  // namespace peal::observe
