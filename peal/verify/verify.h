// Proves that a schedule does what its operation promises, without moving a byte.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"

namespace peal::verify {

/// One error in a schedule, with rank and step.
struct Violation {
  Rank rank = 0;
  int operation = 0;  // index in the sequence
  int step = 0;       // index in the part; the number of steps for an error at the end
  std::string what;

  friend bool operator==(const Violation&, const Violation&) = default;
};

/// "operation 0, rank 1, step 2: <what>"
std::string describe(const Violation&);

/// The first errors of the schedule. An empty result is a proof of these facts:
/// - Every element of every output is exactly what the operation promises: each contribution is
///   there once, and the expression tree is the same on all ranks, so the bits are the same.
/// - There is no race, not even with the user's accesses before and after.
/// - There is no deadlock.
/// - Messages match by place and size.
/// - No rank touches memory of another host, or memory of a rank that did not register it.
/// - The form is canonical, so every field matters (well_formed.h).
/// A schedule that is accepted alone is also correct in every sequence of operations of a group;
/// symbolic_run.h gives the reason.
/// Cost: grows with the steps and with the pieces that they cut memory into, not with the elements.
std::vector<Violation> verify(const schedule::Schedule&);

/// The same for a sequence of operations of one group. The operations share scratch and counters,
/// and no rank waits for the others between two operations. Elements count as bytes. The stage of a
/// part that signals must fit the scratch; other parts stage in memory of their rank.
std::vector<Violation> verify_sequence(std::span<const schedule::Schedule>,
                                       const schedule::ScratchSize&);
/// The smallest scratch for these schedules: each operation uses the staging place of the operation
/// before the previous one.
schedule::ScratchSize smallest_scratch(std::span<const schedule::Schedule>);
/// verify_sequence with the smallest scratch.
std::vector<Violation> verify_sequence(std::span<const schedule::Schedule>);

}  // namespace peal::verify
