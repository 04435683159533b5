// Schedules as text: for goldens, for tests written by hand, and for people who ask what a rank
// does.
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
// The grammar, a line at a time. Words are separated by spaces; `#` begins a comment; what is left
// out is the default of the field.
//   problem: OPERATION, then any of ranks=N per_host=N root=N count=N counts=N,N,...,N
//   stage_limit=N
//            in_place registered
//   part:    rank N, then any of stage=N span=N; ranks come in order, from 0
//   step:    move SLICE, ..., SLICE -> SLICE, ..., SLICE xN, then perhaps finish
//            signal N
//            wait RANKS N
//   SLICE:   perhaps partial, then SPACE RANKS @N without spaces: input[0:4]@250,
//            partial wire[3]@0
//   RANKS:   [first], or [first:end] without the end, or [first:end:stride]
//   N:       a decimal integer
#pragma once

#include <string>
#include <string_view>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

/// The text from which parse_schedule makes an equal schedule, if no stride in it is 0.
std::string to_text(const Schedule&);

/// "move partial wire[3]@0, input[0]@8 -> output[0]@8 x4", as a line of to_text without its
/// indentation.
std::string to_text(const Step&);

/// Checks the form of the text only; whether the schedule has a meaning is for `verify` to say.
/// Errors: usage, which names the line.
/// Cost: linear in the text, memory too.
Schedule parse_schedule(std::string_view text);

}  // namespace peal::schedule
