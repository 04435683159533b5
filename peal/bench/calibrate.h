// How often an operation is repeated in a round, found by trying. Pure: whoever calls it
// (measure.h) does the timing.
#pragma once

#include <functional>
#include <optional>

#include "peal/base/clock.h"
#include "peal/bench/case.h"
#include "peal/bench/protocol.h"

namespace peal::bench {

/// What a timing took.
struct Tried {
  double seconds = 0;  // all of it, the rewriting included
  double median = 0;   // of one operation, in microseconds
};
/// Nothing: it failed.
using Try = std::function<std::optional<Tried>(const Timing&)>;

/// Two messages for a ping-pong, of which half is reported; else 1.
int operations_in(const Case&);

/// How many operations make a batch, and how many batches fit `seconds`, the rewriting included: as
/// `first` is for slot and rewriting. Nothing where a try fails.
/// Cost: some 0.3 of `seconds`, or of an operation that takes longer than half of them, two.
std::optional<Timing> calibrate(const Case&, Timing first, double seconds, const Try&);

/// How long to wait for what takes `seconds` if all goes well.
Timeout patience_for(double seconds);

}  // namespace peal::bench
