// Which algorithm peal's planner uses for a case, and which algorithms apply. Pure.
#pragma once

#include <string>

#include "peal/bench/case.h"
#include "peal/plan/algorithm_settings.h"

namespace peal::bench {

/// The placement of peal's ranks, as far as the choice depends on it.
struct Surroundings {
  int ranks_per_host = 1;  // ranks that share memory
  Bytes stage = {};        // the size of the staging buffer, as in Config
};

/// Whether the algorithm applies to the case there. If not, peal uses another algorithm.
bool algorithm_applies(const std::string& name, const Case& c, Surroundings where);

/// The algorithm that peal uses for the case; "" for send_recv, which has only one.
std::string algorithm_of(const plan::AlgorithmSettings& settings,
                         const Case& c,
                         Surroundings where);

}  // namespace peal::bench
