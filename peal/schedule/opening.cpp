#include "peal/schedule/opening.h"

#include "peal/schedule/problem.h"

namespace peal::schedule {
namespace {

constexpr std::int64_t kFirst = 1;

bool only_root_shares(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kScatter ||
         operation == Operation::kGather;
}

}  // namespace

std::vector<Step> opening(const Problem& problem, Rank self) {
  if (problem.operation == Operation::kBarrier) return {};
  const bool learns = learns_in_opening(problem, self);
  if (only_root_shares(problem.operation)) {
    if (learns) return {Wait{Ranks{problem.root}, kFirst}};
    return {Signal{kFirst}};
  }
  if (learns) return {Signal{kFirst}, Wait{other_ranks_of_host(problem, self), kFirst}};
  return {Signal{kFirst}};
}

bool learns_in_opening(const Problem& problem, Rank self) {
  if (problem.operation == Operation::kBarrier) return false;
  return only_root_shares(problem.operation) ? self != problem.root : is_registered(problem, self);
}

}  // namespace peal::schedule
