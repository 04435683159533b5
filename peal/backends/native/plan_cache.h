// Plans for the engine: picks the algorithm and remembers the parts that it has planned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "peal/engine/planner.h"

namespace peal::native {

/// Threads: one at a time.
class PlanCache final : public engine::Planner {
 public:
  /// `forced` names the algorithm for every problem that it applies to; empty: plan::choose.
  /// Throws Error(usage) if there is none of that name.
  PlanCache(Rank self, const std::string& forced);

  std::uint8_t choose(const schedule::Problem& problem, Bytes element) override;
  const engine::PlannedPart& plan(std::uint8_t algorithm,
                                  const schedule::Problem& problem) override;

 private:
  struct Key {
    std::uint8_t algorithm = 0;
    schedule::Problem problem;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Rank self_;
  std::optional<std::uint8_t> forced_;
  std::unordered_map<Key, engine::PlannedPart, KeyHash> parts_;
  std::optional<engine::PlannedPart> uneven_;  // problems with counts are not worth remembering
};

}  // namespace peal::native
