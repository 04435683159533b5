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

/// "For this operation, up to this size and this number of ranks, that algorithm."
struct Choice {
  Operation operation;
  Bytes up_to;
  int most_ranks;
  std::string_view algorithm;
};

/// The first row that fits wins, if its algorithm applies. `direct` comes before the table: where
/// all ranks share a host it moves each byte once or twice, and any message copies it in and out of
/// a buffer besides. So the rows are for several hosts. Sizes count the whole buffer, all blocks
/// together. Source of the order: Thakur, Rabenseifner and Gropp 2005; of the 256 KiB: measured
/// between two to four hosts, where an exchange of everything beats the ring up to there.
constexpr std::array kChoices = {
    // Messages cost more than bytes, then both count, then bytes only.
    Choice{Operation::kAllReduce, 256_KiB, 4, "pairwise"},
    Choice{Operation::kAllReduce, 16_KiB, kAnyRanks, "recursive_doubling"},
    Choice{Operation::kAllReduce, 1_MiB, kAnyRanks, "halving_doubling"},
    Choice{Operation::kAllReduce, kAnySize, kAnyRanks, "ring"},
    // A tree sends everything log n times from the root, a chain once.
    Choice{Operation::kBroadcast, 512_KiB, kAnyRanks, "binomial_tree"},
    Choice{Operation::kBroadcast, kAnySize, kAnyRanks, "ring"},
    // A tree receives and adds everything log n times at the root; the ring shares the adding.
    Choice{Operation::kReduce, 64_KiB, kAnyRanks, "binomial_tree"},
    Choice{Operation::kReduce, kAnySize, kAnyRanks, "ring"},
    // The root sends or gets every block once, whatever the algorithm: a tree saves its messages,
    // and costs the ranks between a copy.
    Choice{Operation::kScatter, 256_KiB, kAnyRanks, "binomial_tree"},
    Choice{Operation::kGather, 256_KiB, kAnyRanks, "binomial_tree"},
    // The same bytes in all: few messages while they are small, neighbours only when they are
    // large.
    Choice{Operation::kAllGather, 256_KiB, kAnyRanks, "recursive_doubling"},
    Choice{Operation::kAllGather, kAnySize, kAnyRanks, "ring"},
    Choice{Operation::kReduceScatter, 256_KiB, kAnyRanks, "halving_doubling"},
    Choice{Operation::kReduceScatter, 256_KiB, kAnyRanks, "pairwise"},
    Choice{Operation::kReduceScatter, kAnySize, kAnyRanks, "ring"},
    Choice{Operation::kBarrier, kAnySize, kAnyRanks, "recursive_doubling"},
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
  const Algorithm& direct = algorithm_named("direct");
  if (direct.applies(problem)) return direct;
  const Bytes size = size_known_to_all(problem, element);
  for (const Choice& choice : kChoices) {
    if (choice.operation != problem.operation || size > choice.up_to ||
        problem.ranks > choice.most_ranks) {
      continue;
    }
    const Algorithm& algorithm = algorithm_named(choice.algorithm);
    if (algorithm.applies(problem)) return algorithm;
  }
  return algorithm_named(kAlways);
}

std::string describe_choices() {
  std::string text = "any operation, all ranks on one host: direct\n";
  for (const Choice& choice : kChoices) {
    text += fmt::format("{}, several hosts, {}{}: {}\n",
                        name_of(choice.operation),
                        size_words(choice.up_to),
                        ranks_words(choice.most_ranks),
                        choice.algorithm);
  }
  return text + fmt::format("otherwise: {}\n", kAlways);
}

}  // namespace peal::plan
