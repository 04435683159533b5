#include "peal/plan/choose.h"

#include <algorithm>

#include "peal/schedule/problem.h"

namespace peal::plan {
namespace {

using schedule::Problem;

/// By measurement. Source of the order between hosts: Thakur, Rabenseifner and Gropp 2005. The
/// limit of 256 KiB was measured between two to four hosts: up to there, exchanging all data is
/// faster than the ring.
constexpr std::string_view kBuiltIn = R"(
# Small data: one synchronisation and two copies. Large data: the algorithm that moves each byte
# least often. For few ranks that share cores, a synchronisation costs more than some kilobytes.
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

# Only the necessary data crosses between hosts, and the ranks of a host share the sending. For
# small broadcasts and reductions, a tree of ranks has about the same messages as a tree of hosts,
# and waits less inside the hosts.
all_reduce@levels:      0-inf: two_level
broadcast@levels:    512k-inf: two_level
reduce@levels:         0-256k: binomial_tree
reduce@levels:       256k-inf: two_level
# Among many hosts, a ring of hosts has more steps than doubling among all ranks.
all_gather@levels:      0-16k: 2-16 ranks: two_level
all_gather@levels:    16k-inf: two_level
reduce_scatter@levels: 4k-16k: 2-16 ranks: two_level
reduce_scatter@levels: 16k-inf: two_level
barrier@levels:         0-inf: two_level
# For small data messages cost most, then messages and bytes, then only bytes.
all_reduce@hosts:      0-256k: 2-4 ranks:   pairwise
all_reduce@hosts:    256k-1m:  2-4 ranks:   halving_doubling
all_reduce@hosts:       0-16k: 5-inf ranks: recursive_doubling
all_reduce@hosts:      16k-1m: 5-inf ranks: halving_doubling
all_reduce@hosts:      1m-inf: ring
# In a tree the root sends everything log n times, in a chain once.
broadcast@hosts:       0-512k: binomial_tree
broadcast@hosts:     512k-inf: ring
# In a tree the root receives and adds everything log n times; in a ring all ranks share the adding.
reduce@hosts:           0-64k: binomial_tree
reduce@hosts:         64k-inf: ring
# The root sends or receives every block once with any algorithm. A tree saves messages of the root,
# and costs a copy on the ranks between.
scatter@hosts:         0-256k: binomial_tree
scatter@hosts:       256k-inf: pairwise
gather@hosts:          0-256k: binomial_tree
gather@hosts:        256k-inf: pairwise
# All send the same bytes: few messages for small data, only neighbours for large data.
all_gather@hosts:      0-256k: recursive_doubling
all_gather@hosts:    256k-inf: ring
reduce_scatter@hosts:  0-256k: halving_doubling
reduce_scatter@hosts: 256k-inf: ring
all_to_all@hosts:       0-inf: pairwise
barrier@hosts:          0-inf: recursive_doubling
)";

/// All ranks must choose the same algorithm, so a size that some ranks do not know counts as
/// largest.
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

/// The smallest problem with elements of one byte and a size of more than `over`. If an algorithm
/// can do a larger problem, it can usually do this one.
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
  const Bytes size = size_known_to_all(problem, element);
  // If no row for one host applies (there may be no stage), algorithms between hosts do.
  for (const Where where : {where_of(problem), Where::kSeveralHosts}) {
    for (const Row& row : table.rows) {
      const bool counts = fits(row, problem.operation, where, size, problem.ranks);
      if (counts && row.algorithm->applies(problem)) return *row.algorithm;
    }
  }
  return algorithm_named("pairwise");
}

bool may_count(const Row& row, Bytes stage) {
  constexpr int kEnough = 64;  // more ranks than this make no difference to any algorithm
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

}  // namespace peal::plan
