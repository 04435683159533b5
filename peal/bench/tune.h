// Finds peal's fastest algorithms on this machine, as rows for PEAL_TUNE. Called by `peal bench
// --tune`.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/result.h"
#include "peal/plan/table.h"

namespace peal::bench {

/// The names of all algorithms.
std::vector<std::string> algorithm_names();

/// The backend name of peal's fleet with that algorithm: "peal-direct".
std::string tuned_backend(const std::string& algorithm);

/// Rows such as all_reduce:2k-64k:ring for sizes at which an algorithm is faster than the built-in
/// choices of peal (plan/choose.h). `results`: of backends with names of tuned_backend, from ranks
/// with a staging buffer of size `stage`.
/// - The winner of an operation and size is the algorithm with the smallest product of the medians
///   over kinds of memory, types and numbers of ranks. The winner must have done all of these
///   cases.
/// - The winner replaces the built-in choice, and the winner of the previous size, if it is faster
///   by 5% and in three of four rounds; with a single round, by 20%.
/// - The borders of ranges are powers of two between the measured sizes. The first range begins at
///   half of the smallest size, or at 0 if that size is at most 256 B. The last range ends at the
///   largest size.
/// - Rows apply to one host, to several hosts, or to several hosts with several ranks each, as the
///   results.
plan::Table tune(const std::vector<Result>& results, Bytes stage);

}  // namespace peal::bench
