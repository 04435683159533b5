#include "peal/bench/algorithm.h"

#include "peal/base/operation.h"
#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"

namespace peal::bench {
namespace {

/// By one operation, as the engine has it: ranks that share memory keep several operations there.
/// They round the stage up to pages; nearly that much more could be staged than is said here.
Bytes most_staged(int ranks_per_host, Bytes stage) {
  if (ranks_per_host == 1) return stage;
  return schedule::Scratch(schedule::engine_scratch(stage)).limit();
}

schedule::Problem problem_of(const Case& c, Surroundings where) {
  const Bytes limit = most_staged(where.ranks_per_host, where.stage);
  return {.operation = operation_of(c.op),
          .ranks = c.ranks,
          .ranks_per_host = where.ranks_per_host,
          .root = kRoot,
          .count = c.count,
          .in_place = place_of(c) == Place::kIn,
          .stage_limit = Elements(limit / size_of(c.dtype))};
}

}  // namespace

Operation operation_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return Operation::kAllReduce;
    case Op::kReduceScatter:
      return Operation::kReduceScatter;
    case Op::kAllGather:
      return Operation::kAllGather;
    case Op::kBroadcast:
      return Operation::kBroadcast;
    case Op::kReduce:
      return Operation::kReduce;
    case Op::kGather:
      return Operation::kGather;
    case Op::kScatter:
      return Operation::kScatter;
    case Op::kAllToAll:
      return Operation::kAllToAll;
    case Op::kSendRecv:
      return Operation::kSend;
    case Op::kBarrier:
      return Operation::kBarrier;
  }
  return Operation::kBarrier;
}

bool algorithm_applies(const std::string& name, const Case& c, Surroundings where) {
  if (c.op == Op::kSendRecv) return false;
  return plan::algorithm_named(name).applies(problem_of(c, where));
}

std::string algorithm_of(const plan::Choices& choices, const Case& c, Surroundings where) {
  if (c.op == Op::kSendRecv) return "";
  return std::string(choices.choose(problem_of(c, where), size_of(c.dtype)).name);
}

}  // namespace peal::bench
