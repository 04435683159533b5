// Compares a run with an earlier run, by ratios, because times depend on the machine. Pure. Called
// by `peal bench --baseline`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

/// The ratios of peal in one case, with one kind of memory: floor_fraction as "floor", and for each
/// peer how many times as fast peal was. Both are medians over the rounds (result.h).
struct Reached {
  /// "all_gather f32 np=2 hosts=1 65536 B in place registered shm, PEAL_ALGORITHM=ring"
  std::string what;
  std::map<std::string, double> ratios;
};

/// Ignores the results of backends other than peal.
std::vector<Reached> reached_by(const std::vector<Result>& results);
/// From the JSON lines of an earlier run. Errors: usage, with the number of the line.
std::vector<Reached> parse_baseline(std::string_view lines);

/// Errors: usage, with the cases of both, if they have no case in common. Called before the
/// measurement; `planned` needs no ratios.
void check_common_case(const std::vector<Reached>& baseline, const std::vector<Reached>& planned);

struct SlowerCase {
  std::string what;
  std::string ratio;  // "floor", or a peer
  double before = 0;
  double now = 0;
};

/// The number of common ratios, and those that are now less than `tolerance` times their old value.
struct Comparison {
  int compared = 0;
  std::vector<SlowerCase> worse;
};
Comparison compare_with(const std::vector<Reached>& baseline,
                        const std::vector<Reached>& now,
                        double tolerance);

/// A table with a line for each; "" for an empty list.
std::string describe(const std::vector<SlowerCase>& worse);

}  // namespace peal::bench
