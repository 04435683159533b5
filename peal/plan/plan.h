// Pure functions that make schedules. `algorithms()` lists all of them; `choose` picks one.
#pragma once

#include <span>
#include <string_view>

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// One way to carry out an operation.
struct Algorithm {
  std::string_view name;  // "direct", "ring", ...
  /// Whether schedules for the operation depend on Problem::registered and so begin with the
  /// opening (schedule/opening.h).
  bool (*opens)(Operation);
  /// Whether `plan` may be called for the problem. Uses only what all ranks know.
  bool (*applies)(const schedule::Problem&);
  /// The rank's part. Pure; cost linear in the steps of the result.
  schedule::Part (*plan)(const schedule::Problem&, Rank);
};

constexpr bool never_opens(Operation) { return false; }
constexpr bool always_opens(Operation) { return true; }

/// inline, direct, two_level, ring, recursive_doubling, halving_doubling, binomial_tree, pairwise.
std::span<const Algorithm> algorithms();

/// The algorithm with that name. Errors: usage; the text lists the names.
const Algorithm& algorithm_named(std::string_view name);

/// The parts of all ranks: for proofs, simulations and pictures.
schedule::Schedule plan_all(const Algorithm&, const schedule::Problem&);
}  // namespace peal::plan
