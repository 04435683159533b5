// What peal's planner makes of a case: which algorithm does it, and which ones could. Pure.
#pragma once

#include <string>

#include "peal/bench/case.h"
#include "peal/plan/choices.h"

namespace peal::bench {

/// Where peal's ranks are, as far as the choice depends on it.
struct Surroundings {
  int ranks_per_host = 1;  // neighbours that share memory
  Bytes stage = {};        // as Config names it
};

Operation operation_of(Op op);

/// Whether the algorithm can do the case there. If it cannot, peal takes another instead.
bool algorithm_applies(const std::string& name, const Case& c, Surroundings where);

/// The algorithm that peal does the case by; "" for send_recv, which has but one way.
std::string algorithm_of(const plan::Choices& choices, const Case& c, Surroundings where);

}  // namespace peal::bench
