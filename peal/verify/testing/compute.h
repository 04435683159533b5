// Computes a schedule as numbers, by the verifier's expressions. Tests compare the results with
// those of an engine.
#pragma once

#include <vector>

#include "peal/schedule/schedule.h"

namespace peal::verify {

/// A buffer of each rank.
using RankBuffers = std::vector<std::vector<float>>;

/// A reduction adds contributions times `weight`, and divides the sum by `divisor`.
struct Scaling {
  float weight = 1.0F;
  float divisor = 1.0F;
};

/// The outputs of a schedule that `verify` has accepted. Reductions are sums, in the order of the
/// verifier's expressions, so equal expressions give equal bits.
RankBuffers compute(const schedule::Schedule&, const RankBuffers& inputs, Scaling scaling = {});

}  // namespace peal::verify
