// Who caused a job to fail, or to stand still, by what its ranks recorded and how their processes
// ended. Pure; `peal why` prints it, and the launcher may when a job has failed.
//
// Hosts have clocks of their own, which may differ by more than an operation takes. Times are
// compared on one host only; between hosts it counts how far each rank has come, by the numbers
// that operations have in their group on all of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

struct Diagnosis {
  enum class Cause : std::uint8_t {
    kNothing,       // went wrong, as far as was recorded
    kStraggler,     // nothing did, but one rank was waited for most of the time
    kProcessEnded,  // a rank's process was killed, crashed, or ended too early
    kException,     // a rank left by an exception
    kMismatch,      // ranks were in different operations
    kError,         // a rank ran into an error that is not the ranks' doing
    kMissing,       // a rank did not come to an operation that others were in
    kDeadlock,      // ranks waited for each other
  };

  Cause cause = Cause::kNothing;
  /// Whom it was caused by, in the world: the first of those that the sentence names.
  std::vector<Rank> ranks;
  std::string sentence;               // one, with its full stop
  std::vector<std::string> evidence;  // lines, what tells most first

  friend bool operator==(const Diagnosis&, const Diagnosis&) = default;
};

/// "nothing", "straggler", "process_ended", "exception", "mismatch", "error", "missing", "deadlock"
std::string_view name_of(Diagnosis::Cause cause);

/// The first cause in time wins; a rank that has lost another (peer_lost) is never the cause while
/// there is anything else. At most one flight and one end for a rank, of one job.
/// Cost: linear in the operations, times at most the ranks, times their logarithm.
Diagnosis diagnose(std::span<const Flight> flights, std::span<const RankEnd> ends);

}  // namespace peal::observe
