// What can be said of a schedule as it stands, before it is run: every slice inside memory that the
// rank may touch, and canonical form, so that no field of a step can change without meaning.
#pragma once

#include <vector>

#include "peal/verify/verify.h"

namespace peal::verify {

/// The walk relies on what this has found right. `operation` is the place in the sequence.
/// - Ranks exist, and none is listed that changes nothing: a single rank has stride 1.
/// - Memory of another rank is on the same host, and registered if it is input or output.
/// - Nothing is written to an input; where it is also output it is called output.
/// - Only operations that reduce may finish values or have partial results. Only the sources of a
///   move that reduces or finishes may be partial.
/// - A Move moves something; its targets ascend by space, rank and offset, and are disjoint; a
///   source and a target in one memory are the same place or do not touch.
/// - A send copies one own slice; at most one source is on the wire; both from one peer.
/// - A Wait begins and ends with other ranks; the own one is listed only where a progression cannot
///   leave it out.
/// - Signals ascend, and the last one of every rank is the span, the same on all ranks: so a Wait
///   for 0 in a later operation waits for it.
/// - The stage is the same on all ranks and within the limit.
std::vector<Violation> check_form(const schedule::Schedule&, int operation);

}  // namespace peal::verify
