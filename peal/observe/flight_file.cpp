#include "peal/observe/flight_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "peal/base/dtype.h"
#include "peal/base/operation.h"
#include "peal/base/printable.h"

namespace peal::observe {
namespace {

/// The most operations in a record.
constexpr std::uint32_t kMostOperations = 1 << 20;

Error malformed_record(const std::string& how) {
  return Error(ErrorKind::kMismatch, "the record of a rank's operations " + how);
}

/// Reads numbers and texts at an offset. The caller ensures that the offset is inside.
class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size(); }
  std::uint64_t word(std::size_t at) const { return number<std::uint64_t>(at); }
  std::uint32_t half(std::size_t at) const { return number<std::uint32_t>(at); }
  /// The text up to a zero byte or `room`, made printable: the file may hold anything.
  std::string text(std::size_t at, std::size_t room) const {
    const std::string_view all = bytes_.substr(at, room);
    return printable_line(all.substr(0, all.find('\0')));
  }

 private:
  template <class Number>
  Number number(std::size_t at) const {
    Number value;
    std::memcpy(&value, bytes_.data() + at, sizeof(value));
    return value;
  }

  std::string_view bytes_;
};

/// Converts cycles to the time of day, from two readings of both clocks.
class ClockLine {
 public:
  struct ClockReading {
    std::uint64_t cycles = 0;
    std::uint64_t wall = 0;
  };

  explicit ClockLine(const Image& bytes) {
    const std::optional<ClockReading> first = reading(bytes, 0);
    if (!first) throw malformed_record("has no clock");
    first_ = last_ = *first;
    for (std::size_t i = 1; i < kClocks; ++i) {
      const std::optional<ClockReading> later = reading(bytes, i);
      if (later && later->cycles > last_.cycles && later->wall > first_.wall) last_ = *later;
    }
    if (last_.cycles > first_.cycles) {
      nanoseconds_per_cycle_ = static_cast<double>(last_.wall - first_.wall) /
                               static_cast<double>(last_.cycles - first_.cycles);
    }
  }

  WallTime begun() const { return at_wall(first_.wall); }
  WallTime last_seen() const { return at_wall(last_.wall); }
  std::chrono::nanoseconds length(std::uint64_t cycles) const {
    return std::chrono::nanoseconds(bounded(static_cast<double>(cycles) * nanoseconds_per_cycle_));
  }
  /// Starts from the nearer reading, since the length of a cycle is only an estimate.
  WallTime at(std::uint64_t cycles) const {
    const bool is_early = cycles < first_.cycles / 2 + last_.cycles / 2;
    const ClockReading& near = is_early ? first_ : last_;
    if (cycles >= near.cycles) return at_wall(near.wall) + length(cycles - near.cycles);
    return at_wall(near.wall) - length(near.cycles - cycles);
  }

 private:
  /// Rejects clocks that are centuries away: they are wrong, and would overflow.
  static constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;

  static std::int64_t bounded(double nanoseconds) {
    return static_cast<std::int64_t>(std::min(nanoseconds, static_cast<double>(kLatest) / 4));
  }
  static WallTime at_wall(std::uint64_t wall) {
    return WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(wall)));
  }
  static std::optional<ClockReading> reading(const Image& bytes, std::size_t number) {
    const std::size_t at = offsetof(FlightHeader, clocks) + number * sizeof(ClockPair);
    const ClockReading look{bytes.word(at + offsetof(ClockPair, cycles)),
                            bytes.word(at + offsetof(ClockPair, wall))};
    const bool is_whole =
        bytes.word(at + offsetof(ClockPair, check)) == clock_check(look.cycles, look.wall);
    return is_whole && look.wall < kLatest ? std::optional(look) : std::nullopt;
  }

  ClockReading first_;
  ClockReading last_;
  double nanoseconds_per_cycle_ = 0;
};

// ---- the parts

Departure departure_of(std::uint64_t number) {
  return number == 2 ? Departure::kByException : Departure::kNormal;
}

std::vector<Rank> ranks_of(
    const Image& bytes, std::size_t at, int world_size, std::size_t size, RankBudget& budget) {
  std::vector<Rank> ranks;
  const auto runs =
      std::min<std::size_t>(bytes.half(at + offsetof(GroupRecord, runs)), kRunsOfGroup);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t run = at + offsetof(GroupRecord, ranks) + i * sizeof(RankRun);
    const std::uint64_t first = bytes.half(run + offsetof(RankRun, first));
    const std::uint64_t stride = bytes.half(run + offsetof(RankRun, stride));
    const std::uint64_t count = bytes.half(run + offsetof(RankRun, count));
    for (std::uint64_t k = 0; k < count && ranks.size() < size; ++k) {
      const std::uint64_t rank = first + k * stride;
      if (rank >= static_cast<std::uint64_t>(world_size)) break;
      if (!budget.try_take())
        throw malformed_record("names more ranks than a record of its size does");
      ranks.push_back(static_cast<Rank>(rank));
    }
  }
  return ranks;
}

std::vector<FlightGroup> groups_of(const Image& bytes,
                                   std::size_t count,
                                   int world_size,
                                   RankBudget& budget) {
  std::vector<FlightGroup> groups;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = groups_offset() + i * sizeof(GroupRecord);
    const std::uint64_t written = bytes.word(at + offsetof(GroupRecord, written));
    if ((written & kGroupIsWritten) == 0) break;
    FlightGroup group;
    if ((written & kGroupIsBackground) != 0) group.use = FlightGroup::Use::kBackground;
    group.name = bytes.text(at + offsetof(GroupRecord, name), kGroupNameSize);
    group.size = std::min<std::size_t>(bytes.half(at + offsetof(GroupRecord, size)),
                                       static_cast<std::size_t>(world_size));
    group.ranks = ranks_of(bytes, at, world_size, group.size, budget);
    groups.push_back(std::move(group));
  }
  return groups;
}

bool makes_sense(const OperationKind& kind, int world_size) {
  return name_of(kind.operation) != "invalid" && name_of(kind.dtype) != "invalid" &&
         name_of(kind.reduce) != "invalid" && kind.root < world_size;
}

/// Returns nothing if the entry is half written.
std::optional<FlightOperation> operation_at(const Image& bytes,
                                            std::size_t at,
                                            const ClockLine& clock,
                                            int world_size) {
  const std::uint64_t stamp = bytes.word(at + offsetof(OperationRecord, stamp));
  const std::uint64_t start = bytes.word(at + offsetof(OperationRecord, start));
  const std::uint64_t sequence = bytes.word(at + offsetof(OperationRecord, sequence));
  const std::uint64_t kind = bytes.word(at + offsetof(OperationRecord, kind));
  const std::uint64_t count = bytes.word(at + offsetof(OperationRecord, count));
  const std::uint64_t past_waiting = bytes.word(at + offsetof(OperationRecord, past_waiting));
  const std::uint64_t end = bytes.word(at + offsetof(OperationRecord, end));
  const Waits waits = Waits::of(bytes.word(at + offsetof(OperationRecord, waits)));
  FlightOperation operation;
  operation.ordinal = stamp >> 16;
  operation.kind = OperationKind::of(kind);
  operation.sequence = sequence;
  operation.count = Elements(static_cast<std::int64_t>(count));
  const std::uint64_t ended = end & ~kFailedBit;
  // An end or past_waiting before the start belongs to the operation that had this place before.
  const bool is_whole = stamp == stamp_of(operation.ordinal, start, sequence, kind, count) &&
                        (end == 0 || ended >= start) &&
                        (past_waiting == 0 || past_waiting >= start) && operation.ordinal != 0 &&
                        operation.count >= Elements(0) && start < kFailedBit;
  if (!is_whole || !makes_sense(operation.kind, world_size)) return std::nullopt;
  operation.start = clock.at(start);
  if (past_waiting != 0) operation.past_waiting = clock.at(past_waiting);
  if (end != 0) operation.end = clock.at(ended);
  operation.failed = (end & kFailedBit) != 0;
  operation.waited = clock.length(waits.cycles);
  if (waits.last >= 0 && waits.last < world_size) operation.waited_for = waits.last;
  return operation;
}

bool is_empty(const Image& bytes, std::size_t at) {
  for (std::size_t word = 0; word < sizeof(OperationRecord); word += sizeof(Word)) {
    if (bytes.word(at + word) != 0) return false;
  }
  return true;
}

void read_operations(const Image& bytes, const ClockLine& clock, Flight& flight) {
  const std::size_t begin = operations_offset(bytes.half(offsetof(FlightHeader, groups)));
  const std::size_t count = bytes.half(offsetof(FlightHeader, operations));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = begin + i * sizeof(OperationRecord);
    if (is_empty(bytes, at)) continue;
    if (auto operation = operation_at(bytes, at, clock, flight.world_size)) {
      flight.operations.push_back(*operation);
    } else {
      ++flight.torn;
    }
  }
  std::ranges::sort(flight.operations, {}, &FlightOperation::ordinal);
}

/// Returns nothing if the entry is empty or half written.
std::optional<FlightName> name_at(const Image& bytes, std::size_t at, const ClockLine& clock) {
  const std::uint64_t stamp = bytes.word(at + offsetof(NameRecord, stamp));
  const std::uint64_t submitted = bytes.word(at + offsetof(NameRecord, submitted));
  const std::uint64_t started = bytes.word(at + offsetof(NameRecord, started));
  const std::uint64_t end = bytes.word(at + offsetof(NameRecord, end));
  const std::uint64_t group = bytes.word(at + offsetof(NameRecord, group));
  std::array<std::uint64_t, kNameWords> words{};
  for (std::size_t i = 0; i < kNameWords; ++i) {
    words[i] = bytes.word(at + offsetof(NameRecord, text) + i * sizeof(Word));
  }
  const std::uint64_t ended = end & ~kFailedBit;
  // A start or end before the submission belongs to the operation that had this place before.
  const bool is_whole = stamp != 0 && group <= kMoreGroups && submitted < kFailedBit &&
                        stamp == name_stamp_of(stamp >> 16, submitted, group, words) &&
                        (started == 0 || started >= submitted) && (end == 0 || ended >= submitted);
  if (!is_whole) return std::nullopt;
  FlightName name;
  name.ordinal = stamp >> 16;
  name.group = static_cast<std::uint8_t>(group);
  name.text = bytes.text(at + offsetof(NameRecord, text), kNameSize);
  name.submitted = clock.at(submitted);
  if (started != 0) name.started = clock.at(started);
  if (end != 0) name.end = clock.at(ended);
  name.failed = (end & kFailedBit) != 0;
  return name;
}

void read_names(const Image& bytes, const ClockLine& clock, Flight& flight) {
  const std::size_t begin = names_offset(bytes.half(offsetof(FlightHeader, groups)),
                                         bytes.half(offsetof(FlightHeader, operations)));
  for (std::size_t i = 0; i < kNames; ++i) {
    if (auto name = name_at(bytes, begin + i * sizeof(NameRecord), clock)) {
      flight.names.push_back(std::move(*name));
    }
  }
  std::ranges::sort(flight.names, {}, &FlightName::ordinal);
}

std::optional<Rank> accused_in(const Image& bytes, int world_size) {
  const std::uint64_t word = bytes.word(offsetof(FlightHeader, accused));
  if (word == 0 || word > static_cast<std::uint64_t>(world_size)) return std::nullopt;
  return static_cast<Rank>(word - 1);
}

void read_end(const Image& bytes, const ClockLine& clock, Flight& flight) {
  if (const std::uint64_t how = bytes.word(offsetof(FlightHeader, departure)); how != 0) {
    flight.departure = FlightDeparture{
        departure_of(how), clock.at(bytes.word(offsetof(FlightHeader, departed)) & ~kFailedBit)};
  }
  const std::uint64_t failure = bytes.word(offsetof(FlightHeader, failure));
  if (failure == 0) return;
  const auto kind = error_kind_of(static_cast<std::uint8_t>((failure & 0xff) - 1));
  if (!kind) throw malformed_record("has an error of an unknown kind");
  flight.first_error = FlightError{
      .kind = *kind,
      .text = bytes.text(offsetof(FlightHeader, error_text),
                         std::min<std::size_t>(failure >> 16 & 0xffff, kErrorTextSize)),
      .rank = accused_in(bytes, flight.world_size),
      .cause =
          error_cause_of(static_cast<std::uint8_t>(failure >> 48)).value_or(ErrorCause::kUnknown),
      .reason = bytes.text(offsetof(FlightHeader, reason),
                           std::min<std::size_t>(failure >> 32 & 0xffff, kReasonSize)),
      .group = static_cast<std::uint8_t>(failure >> 8),
      .at = clock.at(bytes.word(offsetof(FlightHeader, failed_at)) & ~kFailedBit)};
}

void check_form(const Image& bytes) {
  if (bytes.size() < sizeof(FlightHeader)) throw malformed_record("is too short");
  if (bytes.word(offsetof(FlightHeader, magic)) != kFlightMagic)
    throw malformed_record("does not begin as a record");
  const std::uint32_t version = bytes.half(offsetof(FlightHeader, version));
  if (version != kFlightVersion) {
    throw malformed_record(fmt::format("has version {}, expected {}", version, kFlightVersion));
  }
  const std::uint32_t world = bytes.half(offsetof(FlightHeader, world_size));
  if (world == 0 || world > std::uint32_t{kMostRanks} ||
      bytes.half(offsetof(FlightHeader, rank)) >= world) {
    throw malformed_record("has an impossible rank or world size");
  }
  const std::uint32_t groups = bytes.half(offsetof(FlightHeader, groups));
  const std::uint32_t operations = bytes.half(offsetof(FlightHeader, operations));
  if (groups > kMoreGroups + 1 || operations > kMostOperations ||
      bytes.size() != flight_size(groups, operations)) {
    throw malformed_record("is truncated or too long");
  }
}

}  // namespace

bool is_flight(std::string_view bytes) {
  return bytes.size() >= sizeof(Word) && Image(bytes).word(0) == kFlightMagic;
}

Flight parse_flight(std::string_view text) {
  RankBudget budget;
  budget.add(text);
  return parse_flight(text, budget);
}

Flight parse_flight(std::string_view text, RankBudget& budget) {
  const Image bytes(text);
  check_form(bytes);
  const ClockLine clock(bytes);
  Flight flight;
  flight.rank = static_cast<Rank>(bytes.half(offsetof(FlightHeader, rank)));
  flight.world_size = static_cast<int>(bytes.half(offsetof(FlightHeader, world_size)));
  flight.pid = bytes.word(offsetof(FlightHeader, pid));
  flight.host = bytes.text(offsetof(FlightHeader, host), kHostSize);
  flight.job = bytes.text(offsetof(FlightHeader, job), kJobSize);
  flight.begun = clock.begun();
  flight.last_seen = clock.last_seen();
  for (std::size_t i = 0; i < kAlgorithms; ++i) {
    std::string name =
        bytes.text(offsetof(FlightHeader, algorithms) + i * kAlgorithmSize, kAlgorithmSize);
    if (name.empty()) break;
    flight.algorithms.push_back(std::move(name));
  }
  flight.groups =
      groups_of(bytes, bytes.half(offsetof(FlightHeader, groups)), flight.world_size, budget);
  read_operations(bytes, clock, flight);
  read_names(bytes, clock, flight);
  read_end(bytes, clock, flight);
  return flight;
}

bool is_recorded_by(std::uint64_t pid, const std::string& path) {
  std::error_code none;
  const std::string file = std::filesystem::canonical(path, none);
  if (file.empty()) return false;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(" " + file)) return true;
  }
  return false;
}

}  // namespace peal::observe
