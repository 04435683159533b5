// Finds the rank that caused a job to fail or hang, from the records of its ranks and from how
// their processes ended. Pure; `peal why` prints the result, and so does the launcher after a
// failure.
//
// The clocks of hosts may differ by more than an operation takes. So times are compared on one host
// only. Between hosts the progress of the ranks is compared, by the sequence numbers of the
// operations, which are the same on all ranks of a group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "peal/observe/flight.h"
#include "peal/observe/rank_end.h"

namespace peal::observe {

struct Diagnosis {
  enum class Cause : std::uint8_t {
    kNothing,       // no failure was recorded
    kStraggler,     // no failure, but the others waited for one rank most of the time
    kProcessEnded,  // a rank's process was killed, crashed, or ended too early
    kException,     // a rank left by an exception
    kMismatch,      // ranks were in different operations
    kError,         // a rank ran into an error that no rank caused, or a connection broke
    kMissing,       // a rank did not enter an operation that others were in
    kDeadlock,      // ranks waited for each other
  };

  Cause cause = Cause::kNothing;
  /// The ranks that caused it, in the world, in the order in which the sentence names them.
  std::vector<Rank> ranks;
  std::string sentence;               // one sentence, with its full stop
  std::vector<std::string> evidence;  // lines, the most important first

  friend bool operator==(const Diagnosis&, const Diagnosis&) = default;
};

/// Whether the first error of the rank is the loss of another rank, or of the connection to it.
bool lost_another(const Flight& flight);

/// "nothing", "straggler", "process_ended", "exception", "mismatch", "error", "missing", "deadlock"
std::string_view name_of(Diagnosis::Cause cause);

/// Finds the cause of a failure or a hang: the earliest one. A rank that lost another rank
/// (peer_lost) is the cause only if no other cause exists, and the other rank has no error.
/// `flights` and `ends` have at most one entry for each rank, all of one job.
/// Cost: linear in the operations, times at most the ranks, times their logarithm.
Diagnosis diagnose(std::span<const Flight> flights, std::span<const RankEnd> ends);

}  // namespace peal::observe
