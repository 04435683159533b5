// Which of peal's own algorithms is the fastest for what, on the machine at hand, as the rows that
// PEAL_TUNE takes. Called by `peal bench --tune`.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/result.h"
#include "peal/plan/table.h"

namespace peal::bench {

/// The names of all algorithms there are.
std::vector<std::string> algorithm_names();

/// The fleet of peal with that algorithm is called so: "peal-direct".
std::string tuned_backend(const std::string& algorithm);

/// Rows as all_reduce:2k-64k:ring, where an algorithm is faster than the built-in choices of peal
/// (plan/choose.h). `results`: of backends that are called as tuned_backend says, of ranks with
/// such a stage. For each operation and size that algorithm wins which has the least product of the
/// medians over kinds of memory, types and numbers of ranks, of those that could do all of them. It
/// takes over from the built-in choice, and from the one before it, if it is faster by 5% and in
/// three of four rounds; by 20% if there was one round. Ranges meet between the sizes that were
/// measured, at a power of two; they begin at half of the smallest of them, or at 0 if that is up
/// to 256 B, and end at the largest. Rows are of several hosts, or of several with several ranks
/// each, where the results are.
plan::Table tune(const std::vector<Result>& results, Bytes stage);

}  // namespace peal::bench
