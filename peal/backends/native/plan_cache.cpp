#include "peal/backends/native/plan_cache.h"

#include "peal/plan/plan.h"

namespace peal::native {
namespace {

/// Programs repeat few shapes; one that does not would fill the memory.
constexpr std::size_t kMostParts = 256;

std::uint8_t index_of(const plan::Algorithm& algorithm) {
  return static_cast<std::uint8_t>(&algorithm - plan::algorithms().data());
}

}  // namespace

PlanCache::PlanCache(Rank self, const std::string& forced) : self_(self) {
  if (!forced.empty()) forced_ = index_of(plan::algorithm_named(forced));
}

std::uint8_t PlanCache::choose(const schedule::Problem& problem, Bytes element) {
  if (forced_ && plan::algorithms()[*forced_].applies(problem)) return *forced_;
  return index_of(plan::choose(problem, element));
}

const engine::PlannedPart& PlanCache::plan(std::uint8_t algorithm,
                                           const schedule::Problem& problem) {
  const auto make = [&] {
    return engine::PlannedPart(plan::algorithms()[algorithm].plan(problem, self_), problem.ranks);
  };
  if (!problem.counts.empty()) return uneven_.emplace(make());
  Key key{algorithm, problem};
  const auto found = parts_.find(key);
  if (found != parts_.end()) return found->second;
  if (parts_.size() >= kMostParts) parts_.clear();
  return parts_.emplace(std::move(key), make()).first->second;
}

std::size_t PlanCache::KeyHash::operator()(const Key& key) const {
  const schedule::Problem& p = key.problem;
  std::size_t hash = static_cast<std::size_t>(p.count.value);
  for (const auto word : {static_cast<std::size_t>(key.algorithm),
                          static_cast<std::size_t>(p.operation),
                          static_cast<std::size_t>(p.root),
                          static_cast<std::size_t>(p.in_place),
                          static_cast<std::size_t>(p.access),
                          static_cast<std::size_t>(p.stage_limit.value)}) {
    hash = (hash ^ word) * 0x9e37'79b9'7f4a'7c15u;
  }
  return hash;
}

}  // namespace peal::native
