// Finds by trial how often an operation is repeated in a round. Pure: the caller (measure.h) does
// the timing.
#pragma once

#include <functional>
#include <optional>

#include "peal/base/clock.h"
#include "peal/bench/case.h"
#include "peal/bench/protocol.h"

namespace peal::bench {

/// The result of a trial.
struct Tried {
  double seconds = 0;  // the whole trial, with rewriting
  double median = 0;   // of one operation, in microseconds
};
/// Returns nullopt if the trial failed.
using Try = std::function<std::optional<Tried>(const Timing&)>;

/// 2 for a ping-pong, which has two messages and reports half its time; else 1.
int operations_in(const Case&);

/// Finds the number of operations in a batch, and of batches that fit `seconds`, with rewriting.
/// Takes slot and rewriting from `first`. Returns nullopt if a trial fails. Cost: about 0.3 of
/// `seconds`; for an operation that takes more than half of `seconds`, two runs.
std::optional<Timing> calibrate(const Case&, Timing first, double seconds, const Try&);

/// The timeout for an action that normally takes `seconds`.
Timeout time_limit_for(double seconds);

}  // namespace peal::bench
