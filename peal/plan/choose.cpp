#include "peal/plan/choose.h"

#include <algorithm>
#include <utility>

#include "peal/plan/estimate.h"
#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Problem;

/// Measured, and so it goes before the model (estimate.h), whatever that says; what is not named
/// here is the model's: reduce_scatter of small data where the number of ranks is no power of two,
/// and what a row's algorithm has no stage for. Source of the order between
/// hosts: Thakur, Rabenseifner and Gropp 2005; of the 256 KiB: measured between two to four hosts,
/// where an exchange of everything beats the ring up to there.
constexpr std::string_view kBuiltIn = R"(
# One synchronisation and two copies, then whatever moves each byte as seldom as possible. Few
# ranks that share cores pay more for a synchronisation than for some kilobytes.
all_reduce@host:         0-2k: inline
all_reduce@host:        2k-8k:   2-2 ranks: direct
all_reduce@host:        2k-8k:   3-8 ranks: inline
all_reduce@host:        2k-8k: 9-inf ranks: direct
all_reduce@host:       8k-inf: direct
broadcast@host:          0-4k: inline
broadcast@host:        4k-inf: direct
reduce@host:             0-4k: inline
reduce@host:           4k-inf: direct
scatter@host:            0-4k: inline
scatter@host:          4k-inf: direct
gather@host:             0-4k: inline
gather@host:           4k-inf: direct
all_gather@host:         0-2k: inline
all_gather@host:       2k-16k:   2-2 ranks: direct
all_gather@host:       2k-16k:   3-8 ranks: inline
all_gather@host:       2k-16k: 9-inf ranks: direct
all_gather@host:      16k-inf: direct
reduce_scatter@host:     0-8k: inline
reduce_scatter@host:   8k-16k:   2-2 ranks: direct
reduce_scatter@host:   8k-16k:   3-8 ranks: inline
reduce_scatter@host:   8k-16k: 9-inf ranks: direct
reduce_scatter@host:  16k-inf: direct
all_to_all@host:         0-4k: inline
all_to_all@host:       4k-inf: direct
barrier@host:           0-inf: direct

# Nothing crosses between hosts that need not, and the ranks of a host share the carrying. For small
# broadcasts and reductions a tree of ranks, much like one of hosts, has less to wait for inside.
all_reduce@levels:      0-inf: two_level
broadcast@levels:    512k-inf: two_level
reduce@levels:         0-256k: binomial_tree
reduce@levels:       256k-inf: two_level
# A ring of many hosts has more steps than doubling has among their ranks.
all_gather@levels:      0-16k: 2-16 ranks: two_level
all_gather@levels:    16k-inf: two_level
reduce_scatter@levels: 4k-16k: 2-16 ranks: two_level
reduce_scatter@levels: 16k-inf: two_level
barrier@levels:         0-inf: two_level
# Messages cost more than bytes, then both count, then bytes only.
all_reduce@hosts:      0-256k: 2-4 ranks:   pairwise
all_reduce@hosts:    256k-1m:  2-4 ranks:   halving_doubling
all_reduce@hosts:       0-16k: 5-inf ranks: recursive_doubling
all_reduce@hosts:      16k-1m: 5-inf ranks: halving_doubling
all_reduce@hosts:      1m-inf: ring
# A tree sends everything log n times from the root, a chain once.
broadcast@hosts:       0-512k: binomial_tree
broadcast@hosts:     512k-inf: ring
# A tree receives and adds everything log n times at the root; the ring shares the adding.
reduce@hosts:           0-64k: binomial_tree
reduce@hosts:         64k-inf: ring
# The root sends or gets every block once, whatever the algorithm: a tree saves its messages, and
# costs the ranks between a copy.
scatter@hosts:         0-256k: binomial_tree
scatter@hosts:       256k-inf: pairwise
gather@hosts:          0-256k: binomial_tree
gather@hosts:        256k-inf: pairwise
# The same bytes in all: few messages while they are small, neighbours only when they are large.
all_gather@hosts:      0-256k: recursive_doubling
all_gather@hosts:    256k-inf: ring
reduce_scatter@hosts:  0-256k: halving_doubling
reduce_scatter@hosts: 256k-inf: ring
all_to_all@hosts:       0-inf: pairwise
barrier@hosts:          0-inf: recursive_doubling
)";

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

Where where_of(const Problem& problem) {
  if (problem.ranks_per_host >= problem.ranks) return Where::kOneHost;
  return problem.ranks_per_host > 1 ? Where::kLevels : Where::kSeveralHosts;
}

bool fits(const Row& row, Operation operation, Where where, Bytes size, int ranks) {
  const bool there = row.where == Where::kAnywhere || row.where == where ||
                     (row.where == Where::kSeveralHosts && where == Where::kLevels);
  return row.operation == operation && there && row.over < size && size <= row.up_to &&
         row.least_ranks <= ranks && ranks <= row.most_ranks;
}

/// The smallest problem of elements of one byte that has more than `over`, which most algorithms
/// can do that can do a larger one.
Problem smallest(Operation operation, int ranks, int ranks_per_host, Bytes over, Bytes stage) {
  Problem problem{.operation = operation,
                  .ranks = ranks,
                  .ranks_per_host = ranks_per_host,
                  .count = Elements(0),
                  .stage_limit = Elements(stage.value)};
  if (operation == Operation::kBarrier || over < 0_B) return problem;
  problem.count = Elements(1);
  const std::int64_t each = size_known_to_all(problem, 1_B).value;
  problem.count = Elements(over.value / each + 1);
  return problem;
}

/// By the model. At a tie pairwise, which copies nothing twice.
const Algorithm& cheapest(const Problem& problem, Bytes element) {
  const Algorithm* best = &algorithm_named("pairwise");  // does everything
  double least = estimate(*best, problem, element).value();
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.applies(problem)) continue;
    const auto time = estimate(algorithm, problem, element);
    if (!time || *time >= least) continue;
    best = &algorithm;
    least = *time;
  }
  return *best;
}

}  // namespace

const Table& built_in_choices() {
  static const Table kTable = parse_table(kBuiltIn);
  return kTable;
}

Table tuned(Table rows) {
  const Table& rest = built_in_choices();
  rows.rows.insert(rows.rows.end(), rest.rows.begin(), rest.rows.end());
  return rows;
}

const Algorithm& choose(const Table& table, const Problem& problem, Bytes element) {
  const Where where = where_of(problem);
  const Bytes size = size_known_to_all(problem, element);
  for (const Row& row : table.rows) {
    const bool counts = fits(row, problem.operation, where, size, problem.ranks);
    if (counts && row.algorithm->applies(problem)) return *row.algorithm;
  }
  return cheapest(problem, element);
}

bool may_count(const Row& row, Bytes stage) {
  constexpr int kEnough = 64;  // more ranks than these make no difference to any algorithm
  const int last = std::min(row.most_ranks, std::max(row.least_ranks, 2) + kEnough);
  for (int ranks = std::max(row.least_ranks, 2); ranks <= last; ++ranks) {
    for (const int per_host : {1, 2, ranks}) {
      if (ranks % per_host != 0) continue;
      const Problem problem = smallest(row.operation, ranks, per_host, row.over, stage);
      const Bytes size = size_known_to_all(problem, 1_B);
      if (!fits(row, row.operation, where_of(problem), size, ranks)) continue;
      if (row.algorithm->applies(problem)) return true;
    }
  }
  return false;
}

const Algorithm& choose(const Problem& problem, Bytes element) {
  return choose(built_in_choices(), problem, element);
}

}  // namespace peal::plan
