// Which of peal's own algorithms is the fastest for what, on the machine at hand, as the text that
// PEAL_TUNE takes. Called by `peal bench --tune`.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/result.h"

namespace peal::bench {

/// The names of all algorithms there are.
std::vector<std::string> algorithm_names();

/// Whether the algorithm can do the case where so many neighbouring ranks share memory, with the
/// stage that Config names. If it cannot, peal takes another instead, without a word.
bool algorithm_applies(const std::string& name, const Case& c, int ranks_per_host, Bytes stage);

/// The fleet of peal with that algorithm is called so: "peal-direct".
std::string tuned_backend(const std::string& algorithm);

/// "all_reduce:0-2k:inline;all_reduce:2k-inf:direct". `results`: of backends that are called as
/// tuned_backend says. For each operation and size the algorithm with the least product of the
/// medians over kinds of memory, types and numbers of ranks wins, of those that could do all of
/// them; one that wins by less than 5% does not take over from the one before it. Ranges meet
/// between the sizes that were measured, at a power of two. Rows are of several hosts, or of
/// several with several ranks each, where the results are.
std::string tune_text(const std::vector<Result>& results);

}  // namespace peal::bench
