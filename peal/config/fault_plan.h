// Failures to inject into a job, and when, as a value that people can read and write. InitOptions
// and PEAL_INJECT give a plan to a rank. The transport breaks links by it (transport/faulty), and
// backends/native kills or freezes processes.
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

/// A failure of the process of a rank.
struct ProcessFault {
  enum class Kind : std::uint8_t {
    kKill,    // SIGKILL
    kFreeze,  // SIGSTOP
  };

  Rank rank = 0;
  Kind kind = Kind::kKill;
  /// The failure happens when the rank begins the operation of this number in the group `world`,
  /// counting collectives and messages together, from 1.
  std::int64_t operation = 1;
  /// How long the process is frozen; nothing: for ever.
  std::optional<Timeout> length = {};

  friend bool operator==(const ProcessFault&, const ProcessFault&) = default;
};

/// A failure of the streams between two ranks, in every group that contains both.
struct LinkFault {
  enum class Kind : std::uint8_t {
    kDelay,    // all bytes arrive later, by `delay`
    kSlow,     // at most `per_second` bytes arrive in a second
    kDrop,     // no more bytes arrive, without an error
    kCut,      // the connection is lost
    kCorrupt,  // one byte is changed
  };
  enum class Ways : std::uint8_t { kBoth, kForth };
  enum class Channels : std::uint8_t { kBoth, kData, kMail };

  Rank from = 0;
  Rank to = 1;
  Ways ways = Ways::kBoth;  // kForth: only from `from` to `to`
  Channels channels = Channels::kBoth;
  Kind kind = Kind::kDelay;
  Bytes after = {};       // drop, cut, corrupt: the bytes of each stream that arrive before
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

/// The most faults in a plan.
inline constexpr std::size_t kMostFaults = 1000;

/// Parses faults such as
///   rank 1 kill at operation 10
///   rank 1 freeze at operation 10 for 2 s   # without "for": for good
///   link 0-1 delay 20 ms                    # in both directions
///   link 0>1 drop after 1M                  # only from rank 0 to rank 1
///   link 0-1 mail cut after 4K              # data or mail; without it both
///   link 0>1 corrupt after 1M
///   link 0-1 slow 1M/s
/// Lines or semicolons separate faults; # begins a comment. Sizes are as in base/size_text.h, times
/// are whole numbers of s or ms.
/// Errors: usage, which names the fault (by its line if there are several lines), the wrong word
///   and the expected words.
FaultPlan parse_faults(std::string_view text);

/// The inverse: "link 0>1 mail cut after 4k".
std::string to_text(const ProcessFault& fault);
std::string to_text(const LinkFault& fault);
/// One text for each fault, faults of processes first.
std::vector<std::string> to_texts(const FaultPlan& plan);
/// All faults, separated by semicolons.
std::string to_text(const FaultPlan& plan);

/// Checks that all ranks of the plan exist in a job of `world_size` ranks.
/// Errors: usage, which names a fault of a missing rank.
void check_ranks(const FaultPlan& plan, int world_size);

/// The faults of links within a group, converted to ranks of the group. `world_ranks`: the world
/// ranks of the group's ranks, in order.
std::vector<LinkFault> links_within(const FaultPlan& plan, std::span<const Rank> world_ranks);

}  // namespace peal
