#include "peal/observe/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "peal/observe/operation_text.h"
#include "peal/system/cycles.h"
#include "peal/system/fd.h"
#include "peal/system/file_size.h"
#include "peal/system/own_file.h"

namespace peal::observe {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

/// The distance of the first two clock readings. It gives the length of a cycle to half a percent;
/// later readings give it more exactly.
constexpr std::chrono::microseconds kFirstLook{50};

/// The clock is renewed at every operation whose ordinal is a multiple of this or a power of two.
constexpr std::uint64_t kOperationsPerLook = 1024;

/// How many places a new operation skips because the operation there is still under way.
constexpr int kWays = 64;

std::uint64_t wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <std::size_t kSize>
void copy_text(std::string_view text, char (&to)[kSize]) {
  std::copy_n(text.data(), std::min(text.size(), kSize), to);
}

// ---- the file

Fd make_file(const std::string& path, std::size_t size) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0700);  // if this fails, so does the next step
  check_file_size(Bytes(static_cast<std::int64_t>(size)), "the record of a rank's operations");
  Fd file = make_own_file(path);
  // On a full disk, writing to a mapping without reserved room would kill the process.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size)); error != 0) {
    ::unlink(path.c_str());
    throw system_error("no room for " + path, error);
  }
  return file;
}

std::byte* map(const std::string& path, std::size_t size) {
  const Fd file = path.empty() ? Fd() : make_file(path, size);
  const int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file.get(), 0);
  if (memory == MAP_FAILED) throw system_error("no memory for the record of operations", errno);
  return static_cast<std::byte*>(memory);
}

// ---- its parts

/// Stores both clocks in `pair`. Returns the time of day.
std::uint64_t look_at_clocks(ClockPair& pair) {
  const std::uint64_t wall = wall_clock();
  const std::uint64_t count = cycles();
  pair.cycles.store(count, kRelaxed);
  pair.wall.store(wall, kRelaxed);
  pair.check.store(clock_check(count, wall), kRelaxed);
  return wall;
}

/// Writes as many runs as there is room for. Returns the number of runs.
std::uint32_t to_runs(std::span<const Rank> ranks, std::span<RankRun> runs) {
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < ranks.size() && used < runs.size();) {
    RankRun run{.first = static_cast<std::uint32_t>(ranks[i]), .stride = 1, .count = 1};
    const Rank stride = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 0;
    if (stride > 0) {
      run.stride = static_cast<std::uint32_t>(stride);
      while (i + run.count < ranks.size() &&
             ranks[i + run.count] - ranks[i + run.count - 1] == stride) {
        ++run.count;
      }
    }
    i += run.count;
    runs[used++] = run;
  }
  return used;
}

}  // namespace

// ---- construction and groups

std::shared_ptr<FlightRecorder> FlightRecorder::make(const RecorderOptions& options) {
  const std::size_t size = flight_size(options.groups, options.operations);
  std::byte* const memory = map(options.path, size);
  return std::shared_ptr<FlightRecorder>(new FlightRecorder(options, memory, size));
}

FlightRecorder::FlightRecorder(const RecorderOptions& options, std::byte* memory, std::size_t size)
    : memory_(memory),
      size_(size),
      header_(*new (memory) FlightHeader()),
      groups_(reinterpret_cast<GroupRecord*>(memory + groups_offset()), options.groups),
      ring_(reinterpret_cast<OperationRecord*>(memory + operations_offset(options.groups)),
            options.operations),
      names_(std::span<NameRecord, kNames>(
          reinterpret_cast<NameRecord*>(memory + names_offset(options.groups, options.operations)),
          kNames)) {
  header_.version = kFlightVersion;
  header_.rank = static_cast<std::uint32_t>(options.rank);
  header_.world_size = static_cast<std::uint32_t>(options.world_size);
  header_.groups = static_cast<std::uint32_t>(options.groups);
  header_.operations = static_cast<std::uint32_t>(options.operations);
  header_.pid = static_cast<std::uint64_t>(::getpid());
  ::gethostname(header_.host, kHostSize);
  copy_text(options.job, header_.job);
  for (std::size_t i = 0; i < std::min(options.algorithms.size(), kAlgorithms); ++i) {
    copy_text(options.algorithms[i], header_.algorithms[i]);
  }
  const std::uint64_t start = look_at_clocks(header_.clocks[0]);
  // This also touches each page: a first touch later would cost an operation a microsecond.
  std::uninitialized_value_construct(groups_.begin(), groups_.end());
  std::uninitialized_value_construct(ring_.begin(), ring_.end());
  names_.clear();
  constexpr auto kLook = static_cast<std::uint64_t>(std::chrono::nanoseconds(kFirstLook).count());
  while (wall_clock() - start < kLook) {
  }
  renew_clock();
  header_.magic.store(kFlightMagic, kRelease);
}

FlightRecorder::~FlightRecorder() { ::munmap(memory_, size_); }

std::uint8_t FlightRecorder::add_group(std::string_view name,
                                       std::span<const Rank> ranks) noexcept {
  const std::uint32_t number = groups_added_.fetch_add(1, kRelaxed);
  if (number >= std::min<std::size_t>(groups_.size(), kMoreGroups)) {
    groups_added_.store(kMoreGroups, kRelaxed);  // so that the counter never wraps around
    return kMoreGroups;
  }
  GroupRecord& record = groups_[number];
  copy_text(name, record.name);
  record.size = static_cast<std::uint32_t>(ranks.size());
  record.runs = to_runs(ranks, record.ranks);
  record.written.store(kGroupIsWritten, kRelease);
  renew_clock();
  return static_cast<std::uint8_t>(number);
}

void FlightRecorder::is_background(std::uint8_t group) noexcept {
  if (group < groups_.size())
    groups_[group].written.store(kGroupIsWritten | kGroupIsBackground, kRelease);
}

void FlightRecorder::renew_clock() noexcept {
  look_at_clocks(header_.clocks[1 + renewals_.fetch_add(1, kRelaxed) % (kClocks - 1)]);
}

// ---- operations

OperationRecord& FlightRecorder::take_place(std::uint64_t& ordinal) noexcept {
  for (int way = 0;; ++way) {
    ordinal = begun_.fetch_add(1, kRelaxed) + 1;
    OperationRecord& record = ring_[ordinal & (ring_.size() - 1)];
    const bool is_free = record.stamp.load(kRelaxed) == 0 || record.end.load(kRelaxed) != 0;
    if (is_free || way == kWays) return record;
  }
}

FlightRecorder::Slot FlightRecorder::begin(const OperationKind& kind,
                                           std::uint64_t sequence,
                                           Elements count) noexcept {
  std::uint64_t ordinal = 0;
  OperationRecord& record = take_place(ordinal);
  const std::uint64_t start = cycles();
  const std::uint64_t word = kind.word();
  const auto elements = static_cast<std::uint64_t>(count.value);
  record.stamp.store(0, kRelaxed);
  record.start.store(start, kRelaxed);
  record.sequence.store(sequence, kRelaxed);
  record.kind.store(word, kRelaxed);
  record.count.store(elements, kRelaxed);
  record.past_waiting.store(0, kRelaxed);
  record.end.store(0, kRelaxed);
  record.waits.store(0, kRelaxed);
  record.stamp.store(stamp_of(ordinal, start, sequence, word, elements), kRelease);
  if (ordinal % kOperationsPerLook == 0 || std::has_single_bit(ordinal)) renew_clock();
  return {&record, ordinal};
}

void FlightRecorder::note(const OperationKind& kind,
                          std::uint64_t sequence,
                          Elements count) noexcept {
  const Slot place = begin(kind, sequence, count);
  const std::uint64_t start = place.record_->start.load(kRelaxed);
  place.record_->past_waiting.store(start, kRelaxed);
  place.record_->end.store(start, kRelaxed);
}

void FlightRecorder::note_progress(const Slot& place) noexcept {
  if (place.is_lost()) return;
  place.record_->past_waiting.store(cycles(), kRelaxed);
}

void FlightRecorder::waits_for(const Slot& place, Rank rank, std::uint64_t waited) noexcept {
  if (place.is_lost()) return;
  place.record_->waits.store(Waits{.cycles = waited, .last = rank}.word(), kRelaxed);
  renew_clock();
}

void FlightRecorder::has_waited(const Slot& place, std::uint64_t waited) noexcept {
  if (place.is_lost()) return;
  const Rank last = Waits::of(place.record_->waits.load(kRelaxed)).last;
  place.record_->waits.store(Waits{.cycles = waited, .last = last}.word(), kRelaxed);
}

void FlightRecorder::end(const Slot& place, Ending ending) noexcept {
  if (place.is_lost()) return;
  const std::uint64_t now = cycles() & ~kFailedBit;
  OperationRecord& record = *place.record_;
  const bool is_well = ending == Ending::kWell;
  if (is_well && record.past_waiting.load(kRelaxed) == 0) record.past_waiting.store(now, kRelaxed);
  record.end.store(is_well ? now : now | kFailedBit, kRelease);
  if (!is_well) renew_clock();
}

// ---- the rank

void FlightRecorder::failed(std::uint8_t group, const Error& cause) noexcept {
  // The program does not notice the end of a background group.
  if (group < groups_.size() && (groups_[group].written.load(kRelaxed) & kGroupIsBackground) != 0)
    return;
  if (has_failed_.exchange(true)) return;
  renew_clock();
  const ErrorDetails& details = cause.details();
  const std::string_view text = cause.message().substr(0, kErrorTextSize);
  const std::string_view reason = std::string_view(details.reason).substr(0, kReasonSize);
  copy_text(text, header_.error_text);
  copy_text(reason, header_.reason);
  header_.accused.store(static_cast<std::uint64_t>(details.rank.value_or(-1) + 1), kRelaxed);
  header_.failed_at.store(cycles(), kRelaxed);
  const FailureWord failure{.kind = cause.kind(),
                            .cause = details.cause,
                            .group = group,
                            .text = static_cast<std::uint16_t>(text.size()),
                            .reason = static_cast<std::uint16_t>(reason.size())};
  header_.failure.store(failure.word(), kRelease);
}

void FlightRecorder::left(Departure departure) noexcept {
  if (has_left_.exchange(true)) return;
  renew_clock();
  header_.departed.store(cycles(), kRelaxed);
  header_.departure.store(1 + std::uint64_t{static_cast<std::uint8_t>(departure)}, kRelease);
}

std::string FlightRecorder::current(std::uint8_t group) const {
  const bool is_background =
      group < groups_.size() && (groups_[group].written.load(kRelaxed) & kGroupIsBackground) != 0;
  if (is_background) return "";
  if (std::string names = names_.in_flight(group); !names.empty()) return names;
  struct Found {
    std::uint64_t ordinal = 0;
    std::uint64_t sequence = 0;
    OperationKind kind;
    Elements count;
  } latest;
  for (const OperationRecord& record : ring_) {
    const std::uint64_t stamp = record.stamp.load(kAcquire);
    const std::uint64_t start = record.start.load(kRelaxed);
    const std::uint64_t sequence = record.sequence.load(kRelaxed);
    const std::uint64_t word = record.kind.load(kRelaxed);
    const std::uint64_t count = record.count.load(kRelaxed);
    const bool has_ended = record.end.load(kAcquire) != 0;
    const std::uint64_t ordinal = stamp >> 16;
    const OperationKind kind = OperationKind::of(word);
    if (has_ended || ordinal <= latest.ordinal || kind.group != group) continue;
    if (stamp != stamp_of(ordinal, start, sequence, word, count)) continue;  // half written
    latest = {ordinal, sequence, kind, Elements(static_cast<std::int64_t>(count))};
  }
  if (latest.ordinal == 0) return "";
  return describe(latest.kind, latest.sequence, latest.count);
}

}  // namespace peal::observe
