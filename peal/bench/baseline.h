// A former run as a measure for this one: by ratios, since times are those of a machine. Pure.
// Called by `peal bench --baseline`.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

/// What peal reached in one case, with one kind of memory: its floor_fraction as "floor", and how
/// many times as fast as each peer it was: both medians over the rounds (result.h).
struct Reached {
  /// "all_gather f32 np=2 hosts=1 65536 B in place registered shm, PEAL_ALGORITHM=ring"
  std::string what;
  std::map<std::string, double> ratios;
};

/// Nothing for the results of others than peal.
std::vector<Reached> reached_by(const std::vector<Result>& results);
/// From the JSON lines of a former run. Errors: usage, with the number of the line.
std::vector<Reached> parse_baseline(std::string_view lines);

/// Throws Error(usage) that says what each has, unless they have a case in common. For before the
/// measuring: `planned` needs no ratios.
void check_common_case(const std::vector<Reached>& baseline, const std::vector<Reached>& planned);

struct Worse {
  std::string what;
  std::string ratio;  // "floor", or a peer
  double before = 0;
  double now = 0;
};

/// What both have, and what is now less than `tolerance` times what it was.
struct Comparison {
  int compared = 0;
  std::vector<Worse> worse;
};
Comparison compare_with(const std::vector<Reached>& baseline,
                        const std::vector<Reached>& now,
                        double tolerance);

/// A table, a line for each; empty for none.
std::string describe(const std::vector<Worse>& worse);

}  // namespace peal::bench
