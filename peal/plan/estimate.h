// How long an algorithm should take, by a model of three numbers: what choose.cpp goes by where its
// table says nothing. It ranks algorithms; it does not foretell times.
//
//   time = steps * alpha + bytes * beta + reduced * gamma
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 2005, section 3 (the model) and 4 (the costs).
#pragma once

#include <optional>

#include "peal/plan/plan.h"

namespace peal::plan {

/// What the busiest rank does. Counted as if nothing were cut into pieces, but for what ring and
/// two_level broadcast, where pieces follow each other without a pause, and as if no block were
/// empty and the root rank 0.
struct Load {
  std::int64_t steps = 0;  // messages one after the other; on shared memory synchronisations
  Elements moved = {};     // sent or received, whichever is more; on shared memory read and written
  Elements reduced = {};   // received and added; on shared memory that is in `moved`

  friend bool operator==(const Load&, const Load&) = default;
};

/// As the headers of the algorithms say; nothing for an algorithm of which the model knows nothing.
/// Only for what `applies`. Looks only at what all ranks know: where blocks differ, as if they were
/// alike (all_gather, reduce_scatter) or one element (others).
std::optional<Load> load_of(const Algorithm&, const schedule::Problem&);

/// What it costs, in nanoseconds.
struct Price {
  double alpha;  // a step
  double beta;   // a byte moved
  double gamma;  // a byte reduced
};

/// By how ranks reach each other: through memory that they share (direct and inline), or by
/// messages, inside a host or between hosts.
Price price_of(const Algorithm&, const schedule::Problem&);

/// In nanoseconds; `element` is the size of one element. Only for what `applies`.
std::optional<double> estimate(const Algorithm&, const schedule::Problem&, Bytes element);

}  // namespace peal::plan
