// Schedules as text: for golden files, for handwritten tests, and for people that read a schedule.
//
//   all_reduce ranks=2 per_host=2 count=8 registered in_place
//   rank 0 span=2
//     signal 1
//     wait [1] 1
//     move input[0:2]@0 -> output[0:2]@0 x4 finish   # slice 0 of all inputs, into all outputs
//     signal 2
//     wait [1] 2
//   rank 1 span=2
//     ...
//
// The grammar of a line. Spaces separate words; `#` begins a comment; a field that is left out has
// its default value.
//   problem: OPERATION, then any of ranks=N per_host=N root=N count=N counts=N,N,...,N
//            stage_limit=N in_place in_place=N,...,N registered registered=N,...,N
//   part:    rank N, then any of stage=N span=N; ranks come in order, from 0
//   step:    move SLICE, ..., SLICE -> SLICE, ..., SLICE xN, optionally followed by finish
//            signal N
//            wait RANKS N
//   SLICE:   SPACE RANKS @N without spaces, optionally after the word partial:
//            input[0:4]@250, partial wire[3]@0
//   RANKS:   [first], or [first:end] without the end, or [first:end:stride]
//   N:       a decimal integer
#pragma once

#include <string>
#include <string_view>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

/// The whole schedule as text. parse_schedule makes an equal schedule of it, if each list of ranks
/// has a stride other than 0. A `registered` or `in_place_of` without any rank is read as empty.
std::string to_text(const Schedule&);

/// The first line of a schedule's text.
std::string to_text(const Problem&);

/// One line of a schedule's text, without its indentation:
/// "move partial wire[3]@0, input[0]@8 -> output[0]@8 x4".
std::string to_text(const Step&);

/// Checks only the form of the text. `verify` checks whether the schedule is correct.
/// Errors: usage; the text names the line.
/// Cost: time and memory linear in the text.
Schedule parse_schedule(std::string_view text);

}  // namespace peal::schedule
