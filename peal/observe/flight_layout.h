// The layout of a rank's flight in its file: a header, a table of groups, a ring of the last
// operations, and a table of operations by name (peal/named). The recorder writes through a
// mapping, and may be killed at any instruction. The parser (flight_file.h) reads the bytes.
// Numbers are in the machine's byte order: if another machine has another order, the magic number
// in its files does not match.
//
// Data that changes while others read consists of words, each written atomically. Where several
// words belong together, either the last one written marks the others as complete, or one word is a
// check of the others. So a reader can drop data that is half written.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "peal/base/error.h"
#include "peal/base/operation.h"
#include "peal/base/reduce_op.h"
#include "peal/base/units.h"

namespace peal::observe {

using Word = std::atomic<std::uint64_t>;
static_assert(sizeof(Word) == sizeof(std::uint64_t) && Word::is_always_lock_free);

inline constexpr std::uint64_t kFlightMagic = 0x3174'6c66'6c61'6570;  // "pealflt1"
inline constexpr std::uint32_t kFlightVersion = 3;

/// A cycle count and the time of day at that moment. Two pairs convert any other count to a time.
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
inline constexpr std::size_t kErrorTextSize = 1024;
inline constexpr std::size_t kReasonSize = 512;
/// The first pair is taken at the start. The other two are renewed in turn, so that one of them is
/// always complete.
inline constexpr std::size_t kClocks = 3;

/// A text ends with a zero byte, or fills its field.
struct FlightHeader {
  Word magic;  // written when all constant fields are written
  std::uint32_t version;
  std::uint32_t rank;  // in the world
  std::uint32_t world_size;
  std::uint32_t groups;      // capacity of the table
  std::uint32_t operations;  // capacity of the ring
  std::uint32_t reserved;
  std::uint64_t pid;
  char host[kHostSize];
  char job[kJobSize];
  char algorithms[kAlgorithms][kAlgorithmSize];  // names, indexed by number

  ClockPair clocks[kClocks];
  Word departure;  // 1 + Departure, written after its time; 0: the rank has not left
  Word departed;   // cycles
  Word failure;    // FailureWord, written last; 0: none
  Word failed_at;  // cycles
  Word accused;    // 1 + the rank that the error names; 0: no rank
  char error_text[kErrorTextSize];
  char reason[kReasonSize];
};

/// The first error of a rank, packed into one word.
struct FailureWord {
  ErrorKind kind = ErrorKind::kBug;
  ErrorCause cause = ErrorCause::kUnknown;
  std::uint8_t group = 0;
  std::uint16_t text = 0;  // length, as is `reason`
  std::uint16_t reason = 0;

  constexpr std::uint64_t word() const {
    return (1 + std::uint64_t{static_cast<std::uint8_t>(kind)}) | std::uint64_t{group} << 8 |
           std::uint64_t{text} << 16 | std::uint64_t{reason} << 32 |
           std::uint64_t{static_cast<std::uint8_t>(cause)} << 48;
  }
};

/// Ranks first, first + stride, ... Most groups need only one run.
struct RankRun {
  std::uint32_t first;
  std::uint32_t stride;
  std::uint32_t count;
};

inline constexpr std::size_t kGroupNameSize = 112;
inline constexpr std::size_t kRunsOfGroup = 32;

inline constexpr std::uint64_t kGroupIsWritten = 1;
/// No thread of the program waits in the group's operations.
inline constexpr std::uint64_t kGroupIsBackground = 2;

struct GroupRecord {
  Word written;        // kGroupIsWritten after the rest is written; may add kGroupIsBackground
  std::uint32_t size;  // of the group; the runs hold fewer ranks if there was no room for all
  std::uint32_t runs;
  char name[kGroupNameSize];
  RankRun ranks[kRunsOfGroup];
};

/// All groups that did not fit into the table share this number, which has no record in the table.
inline constexpr std::uint8_t kMoreGroups = 255;

/// One operation: a cache line. The first five words are written when the operation begins, the
/// stamp last. Each of the others is written later, independently.
struct OperationRecord {
  Word stamp;         // ordinal << 16 | check of the words up to `count`; 0: empty or half written
  Word start;         // cycles
  Word sequence;      // of a collective in its group; the tag of a message
  Word kind;          // OperationKind
  Word count;         // elements
  Word past_waiting;  // cycles when it first got past waiting for peers; 0: not yet
  Word end;           // cycles | kFailedBit if it failed; 0: under way
  Word waits;         // Waits
};
static_assert(sizeof(OperationRecord) == 64);

inline constexpr std::uint64_t kFailedBit = std::uint64_t{1} << 63;

/// The stamp of an operation. `ordinal` counts the operations from 1 on.
constexpr std::uint64_t stamp_of(std::uint64_t ordinal,
                                 std::uint64_t start,
                                 std::uint64_t sequence,
                                 std::uint64_t kind,
                                 std::uint64_t count) {
  const std::uint64_t mix = ordinal ^ std::rotl(start, 7) ^ std::rotl(sequence, 19) ^
                            std::rotl(kind, 31) ^ std::rotl(count, 47);
  return ordinal << 16 | (mix * 0x9e37'79b9'7f4a'7c15u) >> 48;
}

inline constexpr std::size_t kNames = 256;
inline constexpr std::size_t kNameWords = 11;
inline constexpr std::size_t kNameSize = kNameWords * sizeof(Word);

/// An operation by name, which consists of several operations of its group. The stamp is written
/// after `submitted`, `group` and `text`; `started` and `end` later, independently.
struct NameRecord {
  Word stamp;             // ordinal << 16 | check; 0: empty or half written
  Word submitted;         // cycles
  Word started;           // cycles; 0: waits for other ranks
  Word end;               // cycles | kFailedBit if it failed; 0: in flight
  Word group;             // its number
  Word text[kNameWords];  // ends with a zero byte, or fills its field
};
static_assert(sizeof(NameRecord) == 128);

/// The stamp of an operation by name. `ordinal` counts the operations from 1 on.
constexpr std::uint64_t name_stamp_of(std::uint64_t ordinal,
                                      std::uint64_t submitted,
                                      std::uint64_t group,
                                      const std::array<std::uint64_t, kNameWords>& text) {
  std::uint64_t mix = ordinal ^ std::rotl(submitted, 7) ^ std::rotl(group, 31);
  for (const std::uint64_t word : text) mix = std::rotl(mix, 5) ^ (word * 0x9e37'79b9'7f4a'7c15u);
  return ordinal << 16 | (mix * 0x9e37'79b9'7f4a'7c15u) >> 48;
}

/// The kind of an operation, in one word: 8 bits each for group, operation, type, reduce op and
/// algorithm, and 24 bits for the root or peer.
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

/// How long an operation has waited for peers, and the last peer. In a word: 40 bits in units of
/// 256 cycles, which last a day, and 24 bits for the rank.
struct Waits {
  std::uint64_t cycles = 0;
  Rank last = -1;  // in the world; -1: no rank

  constexpr std::uint64_t word() const {
    constexpr std::uint64_t kMost = (std::uint64_t{1} << 40) - 1;
    const std::uint64_t units = cycles >> 8 < kMost ? cycles >> 8 : kMost;
    return units << 24 | (static_cast<std::uint64_t>(last + 1) & 0xff'ffff);
  }
  static constexpr Waits of(std::uint64_t word) {
    return {.cycles = word >> 24 << 8, .last = static_cast<Rank>(word & 0xff'ffff) - 1};
  }
};

/// The offsets of the parts, and the total size.
constexpr std::size_t groups_offset() { return (sizeof(FlightHeader) + 63) / 64 * 64; }
constexpr std::size_t operations_offset(std::size_t groups) {
  return groups_offset() + groups * sizeof(GroupRecord);
}
constexpr std::size_t names_offset(std::size_t groups, std::size_t operations) {
  return operations_offset(groups) + operations * sizeof(OperationRecord);
}
constexpr std::size_t flight_size(std::size_t groups, std::size_t operations) {
  return names_offset(groups, operations) + kNames * sizeof(NameRecord);
}
static_assert(sizeof(GroupRecord) % 64 == 0);

}  // namespace peal::observe
