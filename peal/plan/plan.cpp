#include "peal/plan/plan.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/plan/binomial_tree.h"
#include "peal/plan/direct.h"
#include "peal/plan/halving_doubling.h"
#include "peal/plan/pairwise.h"
#include "peal/plan/recursive_doubling.h"
#include "peal/plan/ring.h"
#include "peal/plan/two_level.h"
#include "peal/schedule/problem.h"

namespace peal::plan {

std::span<const Algorithm> algorithms() {
  static const std::array kAll = {kInline,
                                  kDirect,
                                  kTwoLevel,
                                  kRing,
                                  kRecursiveDoubling,
                                  kHalvingDoubling,
                                  kBinomialTree,
                                  kPairwise};
  return kAll;
}

const Algorithm& algorithm_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == name) return algorithm;
    names.push_back(algorithm.name);
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "there is no algorithm \"{}\"; the algorithms are {}", name, fmt::join(names, ", ")));
}

schedule::Schedule plan_all(const Algorithm& algorithm, const schedule::Problem& problem) {
  schedule::Schedule schedule{.problem = problem};
  schedule::Problem own = problem;  // as a running rank knows it
  own.in_place_of.clear();
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    own.in_place = is_in_place(problem, rank);
    schedule.parts.push_back(algorithm.plan(own, rank));
  }
  return schedule;
}

}  // namespace peal::plan
