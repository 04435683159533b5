#include "peal/bench/algorithm.h"

#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"

namespace peal::bench {
namespace {

schedule::Problem problem_of(const Case& c, Surroundings where) {
  const Bytes limit = schedule::engine_stage_limit(where.stage, where.ranks_per_host);
  return {.operation = operation_of(c.op),
          .ranks = c.ranks,
          .ranks_per_host = where.ranks_per_host,
          .root = kRoot,
          .count = c.count,
          .in_place = place_of(c) == BlockPlace::kIn,
          .stage_limit = Elements(limit / size_of(c.dtype))};
}

}  // namespace

bool algorithm_applies(const std::string& name, const Case& c, Surroundings where) {
  if (c.op == Op::kSendRecv) return false;
  return plan::algorithm_named(name).applies(problem_of(c, where));
}

std::string algorithm_of(const plan::AlgorithmSettings& settings,
                         const Case& c,
                         Surroundings where) {
  if (c.op == Op::kSendRecv) return "";
  return std::string(settings.choose(problem_of(c, where), size_of(c.dtype)).name);
}

}  // namespace peal::bench
