// The operations of an algorithm: one planning function for each operation that it can do. Most
// algorithms have such a table.
#pragma once

#include "peal/schedule/schedule.h"

namespace peal::plan {

/// `Self` is how the algorithm describes this rank: for example, its place in the ring or tree.
template <class Self>
struct Planners {
  using Planner = schedule::Part (*)(const schedule::Problem&, Self);

  Planner broadcast = nullptr;
  Planner reduce = nullptr;
  Planner all_reduce = nullptr;
  Planner scatter = nullptr;
  Planner gather = nullptr;
  Planner all_gather = nullptr;
  Planner reduce_scatter = nullptr;
  Planner all_to_all = nullptr;
  Planner barrier = nullptr;

  /// Null if the algorithm does not do the operation.
  constexpr Planner operator[](Operation operation) const {
    switch (operation) {
      case Operation::kBroadcast:
        return broadcast;
      case Operation::kReduce:
        return reduce;
      case Operation::kAllReduce:
        return all_reduce;
      case Operation::kScatter:
        return scatter;
      case Operation::kGather:
        return gather;
      case Operation::kAllGather:
        return all_gather;
      case Operation::kReduceScatter:
        return reduce_scatter;
      case Operation::kAllToAll:
        return all_to_all;
      case Operation::kBarrier:
        return barrier;
      case Operation::kSend:
      case Operation::kRecv:
        return nullptr;
    }
    return nullptr;
  }
};

}  // namespace peal::plan
