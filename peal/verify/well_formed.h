// Checks of a schedule before it is run: every slice lies in memory that the rank may touch, and
// the steps have canonical form, so that every field of a step matters.
#pragma once

#include <vector>

#include "peal/verify/verify.h"

namespace peal::verify {

/// Where the schedule breaks the rules of its form. The run relies on these rules. `operation` is
/// the index in the sequence.
/// - Ranks exist. None is listed without effect: a single rank has stride 1.
/// - Memory of another rank is on the same host. If it is input or output, the operation shares it,
///   and all memory that the operation shares on this host is registered (schedule/problem.h).
/// - An input is not written. If it is also output, a step that writes it calls it output.
/// - Only operations that reduce may finish values or have partial results. Only the sources of a
///   move that reduces or finishes may be partial.
/// - A Move has at least one element. Its targets ascend by space, rank and offset, and are
///   disjoint. A source and a target in one memory are the same place or do not overlap.
/// - A send copies one slice of this rank's memory. At most one source is on the wire. A send and a
///   receive have one peer.
/// - The first and the last rank of a Wait are other ranks. This rank is listed only if a
///   progression cannot skip it.
/// - Signals ascend. The last signal of every rank is the span, which is the same on all ranks of a
///   host. So a Wait for 0 in a later operation waits for that signal.
/// - The stage is the same on all ranks of a host, and within the limit.
std::vector<Violation> check_well_formed(const schedule::Schedule&, int operation);

}  // namespace peal::verify
