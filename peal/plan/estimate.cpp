#include "peal/plan/estimate.h"

#include <algorithm>
#include <array>
#include <bit>

#include "peal/plan/blocks.h"
#include "peal/plan/direct.h"
#include "peal/plan/ring.h"
#include "peal/plan/two_level/broadcast.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Problem;
using enum Operation;

/// Of all blocks together where there are blocks, else of the buffer.
Elements whole(const Problem& problem) {
  switch (problem.operation) {
    case kAllGather:
    case kReduceScatter:
      return block_offset(problem, problem.ranks);
    case kScatter:
    case kGather:
    case kAllToAll:
      return problem.counts.empty() ? problem.count * problem.ranks : Elements(problem.ranks);
    case kBroadcast:
    case kReduce:
    case kAllReduce:
    case kBarrier:
    case kSend:
    case kRecv:
      return problem.count;
  }
  return problem.count;
}

/// Of everything, what one of a host's ranks carries between hosts: all_reduce cuts whole grains.
Elements carried(const Problem& problem, Elements everything) {
  const Elements grain = problem.operation == kAllReduce ? kGrain : Elements(1);
  return Blocks::even(everything, problem.ranks_per_host, grain)[0].count;
}

/// The numbers that costs are made of.
struct Size {
  explicit Size(const Problem& asked)
      : problem(asked),
        n(problem.ranks),
        floor(std::bit_width(static_cast<unsigned>(n)) - 1),
        ceil(std::bit_width(static_cast<unsigned>(n - 1))),
        core(1 << floor),
        fold(core == n ? 0 : 1),
        s(whole(problem)),
        others(s - s / n),
        hosts(n / problem.ranks_per_host),
        hosts_ceil(std::bit_width(static_cast<unsigned>(hosts - 1))),
        slice(carried(problem, s)),
        away(slice - slice / hosts) {}

  const Problem& problem;

  int n;            // ranks
  int floor;        // of log2 n
  int ceil;         // of log2 n
  int core;         // the largest power of two that is at most n
  int fold;         // 1 where that is not all ranks
  Elements s;       // everything
  Elements others;  // all blocks but one's own

  int hosts;
  int hosts_ceil;  // of log2 of them
  Elements slice;  // of everything, what one of a host's ranks carries
  Elements away;   // of that, all hosts' parts but one
};

/// A line of the list below.
struct Cost {
  std::string_view algorithm;
  Operation operation;
  Load (*load)(const Size&);
};

Load pass_around(const Size& a) { return {a.n - 1, a.others, {}}; }
Load reduce_around(const Size& a) { return {a.n - 1, a.others, a.others}; }
Load tree_of_blocks(const Size& a) { return {a.ceil, a.others, {}}; }
Load around_hosts_twice(const Size& a) { return {2 * (a.hosts - 1), 2 * a.away, a.away}; }

/// Messages only. Of reduce, gather and the like the root is the busiest.
constexpr std::array kCosts = {
    Cost{"ring", kReduceScatter, reduce_around},
    Cost{"ring", kAllGather, pass_around},
    Cost{"ring",
         kAllReduce,
         [](const Size& a) {
           return Load{2 * (a.n - 1), 2 * a.others, a.others};
         }},
    Cost{"ring",
         kReduce,  // a reduce_scatter, and then everyone's block to the root
         [](const Size& a) {
           return Load{2 * (a.n - 1), 2 * a.others, a.others};
         }},
    Cost{"ring",
         kBroadcast,
         [](const Size& a) {
           return Load{a.n - 2 + pieces_of(a.s, kRingBroadcastPiece), a.s, {}};
         }},

    Cost{"two_level",
         kReduceScatter,
         [](const Size& a) {
           return Load{a.hosts - 1, a.away, a.away};
         }},
    Cost{"two_level",
         kAllGather,
         [](const Size& a) {
           return Load{a.hosts - 1, a.away, {}};
         }},
    Cost{"two_level", kAllReduce, around_hosts_twice},
    Cost{"two_level", kReduce, around_hosts_twice},  // what is complete goes to the root's host
    Cost{"two_level",
         kBroadcast,
         [](const Size& a) {
           const two_level::Crossing crossing = two_level::crossing_of(a.problem);
           return Load{crossing.steps, crossing.sent, {}};
         }},
    Cost{"two_level",
         kBarrier,
         [](const Size& a) {
           return Load{a.hosts_ceil, {}, {}};
         }},

    Cost{"recursive_doubling",
         kAllReduce,
         [](const Size& a) {
           const int exchanges = a.floor + a.fold;
           return Load{a.floor + 2 * a.fold, a.s * exchanges, a.s * exchanges};
         }},
    Cost{"recursive_doubling",
         kAllGather,  // of several blocks the last rank sends two runs
         [](const Size& a) {
           const int rounds_of_a_block = a.n == a.core + 1 ? 2 : 1;
           return Load{2 * a.ceil - rounds_of_a_block, a.others, {}};
         }},
    Cost{"recursive_doubling",
         kBarrier,
         [](const Size& a) {
           return Load{a.ceil, {}, {}};
         }},

    Cost{"halving_doubling",
         kAllReduce,
         [](const Size& a) {
           const Elements half = a.s * (a.core - 1) / a.core;
           return Load{2 * (a.floor + a.fold), 2 * half + a.s * a.fold, half + a.s * a.fold};
         }},
    Cost{"halving_doubling",
         kReduceScatter,
         [](const Size& a) {
           return Load{a.floor, a.others, a.others};
         }},

    Cost{"binomial_tree",
         kBroadcast,
         [](const Size& a) {
           return Load{a.ceil, a.s * a.ceil, {}};
         }},
    Cost{"binomial_tree",
         kReduce,
         [](const Size& a) {
           return Load{a.ceil, a.s * a.ceil, a.s * a.ceil};
         }},
    Cost{"binomial_tree", kScatter, tree_of_blocks},
    Cost{"binomial_tree", kGather, tree_of_blocks},
    Cost{"binomial_tree",
         kBarrier,
         [](const Size& a) {
           return Load{a.floor + a.ceil, {}, {}};
         }},

    Cost{"pairwise", kAllToAll, pass_around},
    Cost{"pairwise", kAllGather, pass_around},
    Cost{"pairwise", kScatter, pass_around},
    Cost{"pairwise", kGather, pass_around},
    Cost{"pairwise", kReduceScatter, reduce_around},
    Cost{"pairwise",
         kAllReduce,
         [](const Size& a) {
           return Load{a.n - 1, a.s * (a.n - 1), a.s * (a.n - 1)};
         }},
    Cost{"pairwise",
         kReduce,
         [](const Size& a) {
           return Load{a.n - 1, a.s * (a.n - 1), a.s * (a.n - 1)};
         }},
    Cost{"pairwise",
         kBroadcast,
         [](const Size& a) {
           return Load{a.n - 1, a.s * (a.n - 1), {}};
         }},
    Cost{"pairwise",
         kBarrier,
         [](const Size& a) {
           return Load{a.n - 1, {}, {}};
         }},
};

bool is_on_shared_memory(const Algorithm& algorithm) {
  return algorithm.name == kInline.name || algorithm.name == kDirect.name;
}

/// At most so much, whatever the operation and the memory.
Load load_on_shared_memory(const Algorithm& algorithm, const Problem& problem) {
  const Size a(problem);
  if (problem.operation == kBarrier) return {1, {}, {}};
  return algorithm.name == kInline.name ? Load{1, a.s * (a.n + 3), {}} : Load{2, a.s * 5, {}};
}

// Measured by `peal bench --tune` on a machine with two cores (AVX2), two ranks, float32, on one
// host and between two network namespaces; fitted to all_reduce of 64 B and 1 MiB. A real network
// is slower in both, by much the same factor (10 Gbit Ethernet: some 25 us and 0.8 ns), and it is
// the quotient that ranks algorithms.
constexpr Price kSharedMemory = {.alpha = 200, .beta = 0.01, .gamma = 0};
constexpr Price kMessagesInHost = {.alpha = 300, .beta = 0.12, .gamma = 0.05};
constexpr Price kMessagesBetweenHosts = {.alpha = 7500, .beta = 0.27, .gamma = 0.05};

double nanoseconds(const Price& price, const Load& load, Bytes element) {
  const auto bytes = [&](Elements count) {
    return static_cast<double>(count.value) * static_cast<double>(element.value);
  };
  return static_cast<double>(load.steps) * price.alpha + bytes(load.moved) * price.beta +
         bytes(load.reduced) * price.gamma;
}

}  // namespace

std::optional<Load> load_of(const Algorithm& algorithm, const Problem& problem) {
  if (is_on_shared_memory(algorithm)) return load_on_shared_memory(algorithm, problem);
  const auto* const cost = std::ranges::find_if(kCosts, [&](const Cost& line) {
    return line.algorithm == algorithm.name && line.operation == problem.operation;
  });
  if (cost == kCosts.end()) return std::nullopt;
  return cost->load(Size(problem));
}

Price price_of(const Algorithm& algorithm, const Problem& problem) {
  if (is_on_shared_memory(algorithm)) return kSharedMemory;
  return problem.ranks_per_host >= problem.ranks ? kMessagesInHost : kMessagesBetweenHosts;
}

std::optional<double> estimate(const Algorithm& algorithm, const Problem& problem, Bytes element) {
  const auto load = load_of(algorithm, problem);
  if (!load) return std::nullopt;
  return nanoseconds(price_of(algorithm, problem), *load, element);
}

}  // namespace peal::plan
