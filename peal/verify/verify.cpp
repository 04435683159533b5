#include "peal/verify/verify.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/verify/outcome.h"
#include "peal/verify/symbolic_run.h"
#include "peal/verify/well_formed.h"

namespace peal::verify {
namespace {

/// Further violations are usually consequences of the first ones.
constexpr std::size_t kMost = 20;

}  // namespace

std::string describe(const Violation& violation) {
  return fmt::format("operation {}, rank {}, step {}: {}",
                     violation.operation,
                     violation.rank,
                     violation.step,
                     violation.what);
}

std::vector<Violation> verify(const schedule::Schedule& schedule) {
  return verify_sequence({&schedule, 1});
}

schedule::ScratchSize smallest_scratch(std::span<const schedule::Schedule> schedules) {
  Elements most;
  for (const schedule::Schedule& schedule : schedules) {
    for (const schedule::Part& part : schedule.parts) most = std::max(most, part.stage);
  }
  return {.ring = {}, .cell = Bytes(most.value), .cells = 2};
}

std::vector<Violation> verify_sequence(std::span<const schedule::Schedule> schedules) {
  return verify_sequence(schedules, smallest_scratch(schedules));
}

std::vector<Violation> verify_sequence(std::span<const schedule::Schedule> schedules,
                                       const schedule::ScratchSize& size) {
  if (schedules.empty()) return {};
  const Bytes longest = std::max(size.cell, schedule::Scratch(size).limit());
  std::vector<Violation> violations;
  for (int k = 0; k < static_cast<int>(schedules.size()); ++k) {
    const schedule::Schedule& schedule = schedules[static_cast<std::size_t>(k)];
    const std::vector<Violation> found = check_well_formed(schedule, k);
    violations.insert(violations.end(), found.begin(), found.end());
    for (Rank rank = 0; rank < std::ssize(schedule.parts); ++rank) {
      const schedule::Part& part = schedule.parts[static_cast<std::size_t>(rank)];
      if (part.span > 0 && Bytes(part.stage.value) > longest)
        violations.push_back({rank, k, 0, "stages more than the scratch can hold"});
    }
    const schedule::Problem& first = schedules.front().problem;
    if (schedule.problem.ranks != first.ranks ||
        schedule.problem.ranks_per_host != first.ranks_per_host) {
      violations.push_back({0, k, 0, "not an operation of the same group as the first"});
    }
    if (violations.size() > kMost) violations.resize(kMost);
  }
  if (!violations.empty()) return violations;
  State state(schedules, size);
  run(state, kMost);
  if (state.violations.size() < kMost) check_outcome(state);
  return std::move(state.violations);
}

}  // namespace peal::verify
