// How a rank's flight lies in its file: a header, a table of groups, and a ring of the last
// operations. The recorder writes it, by a mapping, and may be killed at any instruction; the
// parser (flight_file.h) reads the bytes. Numbers are in the machine's own order of bytes: a file
// of another machine has a magic number that is none.
//
// What changes while others may look is made of words, each written at once. Where several belong
// together, either the last that is written says that they are there, or one of them is a check of
// the others, so that a reader drops what it sees half written.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal::observe {

using Word = std::atomic<std::uint64_t>;
static_assert(sizeof(Word) == sizeof(std::uint64_t) && Word::is_always_lock_free);

inline constexpr std::uint64_t kFlightMagic = 0x3174'6c66'6c61'6570;  // "pealflt1"
inline constexpr std::uint32_t kFlightVersion = 1;

/// A count of cycles and the time of day at that moment. Two of them turn any other count into a
/// time.
struct ClockPair {
  Word cycles;
  Word wall;   // nanoseconds since 1970
  Word check;  // clock_check of the two
};

constexpr std::uint64_t clock_check(std::uint64_t cycles, std::uint64_t wall) {
  return (cycles ^ (wall << 1)) * 0x9e37'79b9'7f4a'7c15u + 1;
}

inline constexpr std::size_t kHostSize = 256;
inline constexpr std::size_t kJobSize = 128;
inline constexpr std::size_t kAlgorithms = 16;
inline constexpr std::size_t kAlgorithmSize = 24;
inline constexpr std::size_t kVerdictSize = 1024;
/// The first is of the start; the others are renewed in turn, so that one of them is whole.
inline constexpr std::size_t kClocks = 3;

/// Texts end with a zero, or with their room.
struct FlightHeader {
  Word magic;  // written when all that stays as it is has been
  std::uint32_t version;
  std::uint32_t rank;  // in the world
  std::uint32_t world_size;
  std::uint32_t groups;      // how many the table has room for
  std::uint32_t operations;  // and the ring
  std::uint32_t reserved;
  std::uint64_t pid;
  char host[kHostSize];
  char job[kJobSize];
  char algorithms[kAlgorithms][kAlgorithmSize];  // their names, by number

  ClockPair clocks[kClocks];
  Word departure;  // 1 + Departure, written after its time; 0: has not left
  Word departed;   // cycles
  Word verdict;    // 1 + ErrorKind | group << 8 | length of the text << 16, written last; 0: none
  Word judged;     // cycles
  char verdict_text[kVerdictSize];
};

/// Ranks first, first + stride, ..: most groups are one of these.
struct RankRun {
  std::uint32_t first;
  std::uint32_t stride;
  std::uint32_t count;
};

inline constexpr std::size_t kGroupNameSize = 112;
inline constexpr std::size_t kRunsOfGroup = 32;

struct GroupRecord {
  Word written;        // 1 when the rest has been
  std::uint32_t size;  // of the group; its runs may have fewer ranks, if there was no room for all
  std::uint32_t runs;
  char name[kGroupNameSize];
  RankRun ranks[kRunsOfGroup];
};

/// The groups that had no room in the table share this number, which has no record there.
inline constexpr std::uint8_t kMoreGroups = 255;

/// One operation: a cache line. The first five words are written when it begins, the stamp last;
/// the others as it goes on, each for itself.
struct OperationRecord {
  Word stamp;         // ordinal << 16 | check of the words up to `count`; 0: none, or half written
  Word start;         // cycles
  Word sequence;      // of a collective in its group; the tag of a message
  Word kind;          // OperationKind
  Word count;         // elements
  Word past_waiting;  // cycles when it first got past waiting for peers; 0: it has not
  Word end;           // cycles | kFailedBit if it failed; 0: under way
  Word waits;         // Waits
};
static_assert(sizeof(OperationRecord) == 64);

inline constexpr std::uint64_t kFailedBit = std::uint64_t{1} << 63;

/// The stamp of the operation that was the `ordinal`-th to begin, from 1 on.
constexpr std::uint64_t stamp_of(std::uint64_t ordinal,
                                 std::uint64_t start,
                                 std::uint64_t sequence,
                                 std::uint64_t kind,
                                 std::uint64_t count) {
  const std::uint64_t mix = ordinal ^ std::rotl(start, 7) ^ std::rotl(sequence, 19) ^
                            std::rotl(kind, 31) ^ std::rotl(count, 47);
  return ordinal << 16 | (mix * 0x9e37'79b9'7f4a'7c15u) >> 48;
}

/// What an operation is, in one word: 8 bits each of group, operation, type, reduce op and
/// algorithm, and 24 of the root or peer.
struct OperationKind {
  std::uint8_t group = 0;
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kU8;
  ReduceOp::Kind reduce = ReduceOp::Kind::kSum;
  std::uint8_t algorithm = 0;
  Rank root = 0;  // in the world, or kAnySource

  constexpr std::uint64_t word() const {
    return std::uint64_t{group} | std::uint64_t{static_cast<std::uint8_t>(operation)} << 8 |
           std::uint64_t{static_cast<std::uint8_t>(dtype)} << 16 |
           std::uint64_t{static_cast<std::uint8_t>(reduce)} << 24 | std::uint64_t{algorithm} << 32 |
           static_cast<std::uint64_t>(root + 1) << 40;
  }
  static constexpr OperationKind of(std::uint64_t word) {
    return {.group = static_cast<std::uint8_t>(word),
            .operation = static_cast<Operation>(word >> 8 & 0xff),
            .dtype = static_cast<DType>(word >> 16 & 0xff),
            .reduce = static_cast<ReduceOp::Kind>(word >> 24 & 0xff),
            .algorithm = static_cast<std::uint8_t>(word >> 32),
            .root = static_cast<Rank>(word >> 40) - 1};
  }

  friend bool operator==(const OperationKind&, const OperationKind&) = default;
};

/// How long an operation has waited for peers, and for whom last: 40 bits of 256 cycles each, which
/// are a day, and 24 of the rank.
struct Waits {
  std::uint64_t cycles = 0;
  Rank last = -1;  // in the world; -1: for nobody

  constexpr std::uint64_t word() const {
    constexpr std::uint64_t kMost = (std::uint64_t{1} << 40) - 1;
    const std::uint64_t units = cycles >> 8 < kMost ? cycles >> 8 : kMost;
    return units << 24 | (static_cast<std::uint64_t>(last + 1) & 0xff'ffff);
  }
  static constexpr Waits of(std::uint64_t word) {
    return {.cycles = word >> 24 << 8, .last = static_cast<Rank>(word & 0xff'ffff) - 1};
  }
};

/// Where the parts lie, and how much that is in all.
constexpr std::size_t groups_offset() { return (sizeof(FlightHeader) + 63) / 64 * 64; }
constexpr std::size_t operations_offset(std::size_t groups) {
  return groups_offset() + groups * sizeof(GroupRecord);
}
constexpr std::size_t flight_size(std::size_t groups, std::size_t operations) {
  return operations_offset(groups) + operations * sizeof(OperationRecord);
}
static_assert(sizeof(GroupRecord) % 64 == 0);

}  // namespace peal::observe
