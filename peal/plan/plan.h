// Pure functions that make schedules. `algorithms()` is the one list of them; `choose` picks from
// it.
#pragma once

#include <span>
#include <string_view>

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// One way to carry out an operation.
struct Algorithm {
  std::string_view name;  // "direct", "ring", ...
  /// Whether the operation's schedule depends on Problem::access, so that ranks have to agree on
  /// it.
  bool (*looks_at_access)(Operation);
  /// Whether `plan` may be called for the problem. Looks only at what all ranks know.
  bool (*applies)(const schedule::Problem&);
  /// Rank's part. Pure; cost linear in the steps that it returns.
  schedule::Part (*plan)(const schedule::Problem&, Rank);
};

constexpr bool never_looks_at_access(Operation) { return false; }
constexpr bool always_looks_at_access(Operation) { return true; }

/// inline, direct, two_level, ring, recursive_doubling, halving_doubling, binomial_tree, pairwise.
std::span<const Algorithm> algorithms();

/// The algorithm of that name; throws Error(usage) that lists the names if there is none.
const Algorithm& algorithm_named(std::string_view name);

/// Every rank's part: for proofs, simulations and pictures.
schedule::Schedule plan_all(const Algorithm&, const schedule::Problem&);

/// The best known algorithm for the problem, by a table of operation and size; every problem has
/// one. Looks only at what all ranks know, so that all choose alike. `element` is the size of one
/// element.
const Algorithm& choose(const schedule::Problem&, Bytes element);

}  // namespace peal::plan
