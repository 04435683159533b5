// Proves, without moving a byte, that a schedule does what its operation promises.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"

namespace peal::verify {

/// One thing that is wrong, in words that name rank and step.
struct Violation {
  Rank rank = 0;
  int operation = 0;  // index in the sequence
  int step = 0;       // index in the part; the number of steps where the end is meant
  std::string what;

  friend bool operator==(const Violation&, const Violation&) = default;
};

/// "operation 0, rank 1, step 2: <what>"
std::string describe(const Violation&);

/// What is wrong with the schedule; the first few things. Empty means proved:
/// every element of every output is exactly what the operation promises (each contribution once,
/// and the same expression tree on all ranks, so the same bits); no race, with the user's own
/// accesses before and after included; no deadlock; messages match by place and size; no memory of
/// another host or of a rank that did not register it is touched; canonical form, so that every
/// field matters (form.h).
/// What is accepted alone is also right in every row of operations of a group (walk.h says why).
/// Cost: grows with the steps and with the pieces that they cut memory into, not with elements.
std::vector<Violation> verify(const schedule::Schedule&);

/// The same for operations of one group in a row, as they meet. Scratch and counters are shared
/// between them, and no rank waits for the others between two operations. Elements stand for bytes.
std::vector<Violation> verify_sequence(std::span<const schedule::Schedule>,
                                       const schedule::ScratchSize&);
/// With as little scratch as possible: each operation stages where the one before the last did.
std::vector<Violation> verify_sequence(std::span<const schedule::Schedule>);

}  // namespace peal::verify
