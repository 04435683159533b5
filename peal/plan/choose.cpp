#include "peal/plan/choose.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/plan/plan.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Problem;

constexpr Bytes kAnySize(std::numeric_limits<std::int64_t>::max());
constexpr int kAnyRanks = std::numeric_limits<int>::max();

enum class Hosts : std::uint8_t { kOne, kSeveral };

/// "For this operation, where the ranks are on one host or on several, up to this size and this
/// number of ranks, that algorithm."
struct Choice {
  Hosts hosts;
  Operation operation;
  Bytes up_to;
  int most_ranks;
  std::string_view algorithm;
};

using enum Hosts;

/// The first row that fits wins, if its algorithm applies. Sizes count the whole buffer, all blocks
/// together. Source of the order between hosts: Thakur, Rabenseifner and Gropp 2005; of the 256
/// KiB: measured between two to four hosts, where an exchange of everything beats the ring up to
/// there.
constexpr std::array kChoices = {
    // One synchronisation and two copies, then whatever moves each byte as seldom as possible.
    Choice{kOne, Operation::kAllReduce, 2_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kAllReduce, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kBroadcast, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kBroadcast, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kReduce, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kReduce, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kScatter, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kScatter, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kGather, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kGather, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kAllGather, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kAllGather, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kReduceScatter, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kReduceScatter, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kAllToAll, 4_KiB, kAnyRanks, "inline"},
    Choice{kOne, Operation::kAllToAll, kAnySize, kAnyRanks, "direct"},
    Choice{kOne, Operation::kBarrier, kAnySize, kAnyRanks, "direct"},
    // Messages cost more than bytes, then both count, then bytes only.
    Choice{kSeveral, Operation::kAllReduce, 256_KiB, 4, "pairwise"},
    Choice{kSeveral, Operation::kAllReduce, 16_KiB, kAnyRanks, "recursive_doubling"},
    Choice{kSeveral, Operation::kAllReduce, 1_MiB, kAnyRanks, "halving_doubling"},
    Choice{kSeveral, Operation::kAllReduce, kAnySize, kAnyRanks, "ring"},
    // A tree sends everything log n times from the root, a chain once.
    Choice{kSeveral, Operation::kBroadcast, 512_KiB, kAnyRanks, "binomial_tree"},
    Choice{kSeveral, Operation::kBroadcast, kAnySize, kAnyRanks, "ring"},
    // A tree receives and adds everything log n times at the root; the ring shares the adding.
    Choice{kSeveral, Operation::kReduce, 64_KiB, kAnyRanks, "binomial_tree"},
    Choice{kSeveral, Operation::kReduce, kAnySize, kAnyRanks, "ring"},
    // The root sends or gets every block once, whatever the algorithm: a tree saves its messages,
    // and costs the ranks between a copy.
    Choice{kSeveral, Operation::kScatter, 256_KiB, kAnyRanks, "binomial_tree"},
    Choice{kSeveral, Operation::kGather, 256_KiB, kAnyRanks, "binomial_tree"},
    // The same bytes in all: few messages while they are small, neighbours only when they are
    // large.
    Choice{kSeveral, Operation::kAllGather, 256_KiB, kAnyRanks, "recursive_doubling"},
    Choice{kSeveral, Operation::kAllGather, kAnySize, kAnyRanks, "ring"},
    Choice{kSeveral, Operation::kReduceScatter, 256_KiB, kAnyRanks, "halving_doubling"},
    Choice{kSeveral, Operation::kReduceScatter, 256_KiB, kAnyRanks, "pairwise"},
    Choice{kSeveral, Operation::kReduceScatter, kAnySize, kAnyRanks, "ring"},
    Choice{kSeveral, Operation::kBarrier, kAnySize, kAnyRanks, "recursive_doubling"},
};

/// Every operation has it, whatever the sizes: the last resort, and the only way of all_to_all.
constexpr std::string_view kAlways = "pairwise";

/// All ranks must choose alike, so a size that not all of them know counts as the largest.
Bytes size_known_to_all(const Problem& problem, Bytes element) {
  switch (problem.operation) {
    case Operation::kBroadcast:
    case Operation::kReduce:
    case Operation::kAllReduce:
      return element * problem.count.value;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      return element * block_offset(problem, problem.ranks).value;
    case Operation::kScatter:
    case Operation::kGather:
    case Operation::kAllToAll:
      return problem.counts.empty() ? element * problem.count.value * problem.ranks : kAnySize;
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return Bytes(0);
  }
  return Bytes(0);
}

std::string size_words(Bytes size) {
  if (size == kAnySize) return "any size";
  return size < 1_MiB ? fmt::format("up to {} KiB", size / 1_KiB)
                      : fmt::format("up to {} MiB", size / 1_MiB);
}

std::string ranks_words(int most) {
  return most == kAnyRanks ? std::string() : fmt::format(", 2 to {} ranks", most);
}

}  // namespace

const Algorithm& choose(const Problem& problem, Bytes element) {
  const Hosts hosts = problem.ranks_per_host >= problem.ranks ? kOne : kSeveral;
  const Bytes size = size_known_to_all(problem, element);
  for (const Choice& choice : kChoices) {
    if (choice.hosts != hosts || choice.operation != problem.operation || size > choice.up_to ||
        problem.ranks > choice.most_ranks) {
      continue;
    }
    const Algorithm& algorithm = algorithm_named(choice.algorithm);
    if (algorithm.applies(problem)) return algorithm;
  }
  return algorithm_named(kAlways);
}

std::string describe_choices() {
  std::string text;
  for (const Choice& choice : kChoices) {
    text += fmt::format("{}, {}, {}{}: {}\n",
                        name_of(choice.operation),
                        choice.hosts == kOne ? "one host" : "several hosts",
                        size_words(choice.up_to),
                        ranks_words(choice.most_ranks),
                        choice.algorithm);
  }
  return text + fmt::format("otherwise: {}\n", kAlways);
}

}  // namespace peal::plan
