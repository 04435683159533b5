// What is to go wrong in a job, and when: rehearsed failures, as a value that people read and
// write. InitOptions and PEAL_INJECT give one to a rank; transport breaks links by it
// (transport/faulty), backends/native ends or stops processes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"

namespace peal {

/// What befalls the process of a rank.
struct ProcessFault {
  enum class Kind : std::uint8_t {
    kKill,    // SIGKILL
    kFreeze,  // SIGSTOP
  };

  Rank rank = 0;
  Kind kind = Kind::kKill;
  /// When the rank begins so many-th of its operations of the group `world`, collectives and
  /// messages counted together, from 1.
  std::int64_t operation = 1;
  /// How long it is frozen; nothing: for good.
  std::optional<Timeout> length = {};

  friend bool operator==(const ProcessFault&, const ProcessFault&) = default;
};

/// What befalls the streams between two ranks, in every group of which both are.
struct LinkFault {
  enum class Kind : std::uint8_t {
    kDelay,    // all bytes arrive so much later
    kSlow,     // no more bytes arrive in a second
    kDrop,     // nothing arrives any more, and nobody is told
    kCut,      // the connection is lost
    kCorrupt,  // one byte is another than was sent
  };
  enum class Ways : std::uint8_t { kBoth, kForth };
  enum class Channels : std::uint8_t { kBoth, kData, kMail };

  Rank from = 0;
  Rank to = 1;
  Ways ways = Ways::kBoth;  // kForth: only what `from` sends to `to`
  Channels channels = Channels::kBoth;
  Kind kind = Kind::kDelay;
  Bytes after = {};       // drop, cut, corrupt: so many bytes of each stream arrive well
  Timeout delay = {};     // delay
  Bytes per_second = {};  // slow

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

struct FaultPlan {
  std::vector<ProcessFault> processes = {};
  std::vector<LinkFault> links = {};

  bool empty() const { return processes.empty() && links.empty(); }
  friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

/// A plan holds no more than so many faults.
inline constexpr std::size_t kMostFaults = 1000;

/// Faults as in
///   rank 1 kill at operation 10
///   rank 1 freeze at operation 10 for 2 s   # without "for": for good
///   link 0-1 delay 20 ms                    # in both directions
///   link 0>1 drop after 1M                  # of what rank 0 sends to rank 1
///   link 0-1 mail cut after 4K              # data or mail; else both
///   link 0>1 corrupt after 1M
///   link 0-1 slow 1M/s
/// Between faults are lines or semicolons; what follows # in its line means nothing. Sizes are
/// those of base/size_text.h, times whole numbers of s or ms.
/// Errors: usage, which names the fault - by its line where there are lines -, the word that is
/// wrong and what may stand there.
FaultPlan parse_faults(std::string_view text);

/// The inverse: "link 0>1 mail cut after 4k".
std::string to_text(const ProcessFault& fault);
std::string to_text(const LinkFault& fault);
/// One text for each fault, those of processes first.
std::vector<std::string> to_texts(const FaultPlan& plan);
/// All of them, with semicolons between.
std::string to_text(const FaultPlan& plan);

/// Errors: usage, which names a fault of a rank that a job of so many ranks has not.
void check_ranks(const FaultPlan& plan, int world_size);

/// The faults of links within a group, by the ranks there; `world_ranks`: of the group's ranks, in
/// order.
std::vector<LinkFault> links_within(const FaultPlan& plan, std::span<const Rank> world_ranks);

}  // namespace peal
