// A schedule: one collective operation as plain data. For each rank it lists the steps that the
// rank takes. `plan` creates schedules, `verify` proves them, and `engine` executes them. Every
// algorithm of the library is a schedule.
//
// There are three kinds of steps:
//   Move    copies, reduces, sends or receives elements, depending on its sources and targets.
//   Signal  raises this rank's counter in shared memory, so that ranks of the same host see it.
//   Wait    waits until counters of other ranks of the same host have reached a value.
//
// Ranks of one host can work on each other's memory, and synchronise by Signal and Wait. Any two
// ranks can exchange messages, by a Move to or from the wire.
//
// Example: an all_reduce of two ranks on one host, the steps of rank 0 in text form (text.h):
//   signal 1                                      this rank's input is ready
//   wait [1] 1                                    rank 1's input is ready
//   move input[0:2]@0 -> output[0:2]@0 x4 finish  reduces the first half of both inputs, in rank
//                                                 order, into both outputs; rank 1 does the rest
//   signal 2                                      this rank does not touch rank 1's memory any more
//   wait [1] 2                                    rank 1 does not touch this rank's memory any more
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "peal/base/operation.h"
#include "peal/base/units.h"
#include "peal/schedule/inline_vector.h"

namespace peal::schedule {

/// The kinds of memory that a step reads and writes. Offsets count elements.
enum class Space : std::uint8_t {
  kInput,   // the input buffer of the rank
  kOutput,  // the output buffer of the rank
  kStage,   // staging buffer of the rank; with a window, the other ranks of its host can reach it
  kWire,    // the stream of elements between two ranks; the offset is the position in the stream,
            // counted from the beginning of the operation
};

/// "input", "output", "stage", "wire"; "invalid" for any other number.
std::string_view name_of(Space space);

/// Ranks in arithmetic progression: first, first + stride, ... (`count` of them).
struct Ranks {
  Rank first = 0;
  int count = 1;
  int stride = 1;

  Rank operator[](int i) const { return first + i * stride; }
  bool contains(Rank rank) const;
  friend bool operator==(const Ranks&, const Ranks&) = default;
};

/// The content of a source of a reduction: one rank's contribution, or a partial result that
/// earlier moves have reduced and not completed. The reduction applies the operator's first step to
/// each contribution once, and never to a partial result.
/// Example: an average first scales each contribution down, so that partial sums do not overflow.
enum class Holds : std::uint8_t { kContribution, kPartial };

/// The same place in the memory of each of `ranks`. On the wire, the rank is the peer.
struct Slice {
  Space space = Space::kInput;
  Ranks ranks = {};
  Elements offset = {};
  /// Has a meaning for the sources of a Move that reduces or finishes; elsewhere kContribution.
  Holds holds = Holds::kContribution;

  friend bool operator==(const Slice&, const Slice&) = default;
};

/// Whether a Move completes a reduction, by the operator's last step. Each element of a reduced
/// result is completed exactly once.
/// Example: an average scales contributions by 1/s, and its last step divides by ranks/s.
enum class Finish : std::uint8_t { kNo, kYes };

/// Moves `count` elements from the sources to the targets:
///   one source place    a copy
///   several             a reduction, in the order listed, left to right; a slice of several ranks
///                       is one source for each rank
///   source on the wire  a receive: takes exactly the elements of one send
///   target on the wire  a send
///   several targets     the result is stored in each of them
/// A send has one target, the wire, and one source, a slice of this rank's memory. A send does not
/// block: the source is read at some time before the matching receive ends, and must not change
/// until then.
struct Move {
  InlineVector<Slice, 3> from = {};
  InlineVector<Slice, 2> to = {};
  Elements count = {};
  Finish finish = Finish::kNo;

  friend bool operator==(const Move&, const Move&) = default;
};

/// Whether the move copies values unchanged: it has one source place and does not finish.
bool is_copy(const Move&);

/// Sets this rank's counter to base + value. A rank that sees the new counter also sees all that
/// this rank did before (release and acquire).
/// The base is the value that the counters of all ranks had when the operation began. The values of
/// a rank's signals ascend; the last one is Part::span.
struct Signal {
  std::int64_t value = 0;
  friend bool operator==(const Signal&, const Signal&) = default;
};

/// Waits until the counter of each of `ranks` is at least base + value. A value of 0 waits for
/// earlier operations: until those ranks have finished the operations that used the same staging
/// place (scratch.h).
/// `ranks` contains the waiting rank only if a progression cannot skip that rank.
struct Wait {
  Ranks ranks = {};
  std::int64_t value = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};

using Step = std::variant<Move, Signal, Wait>;

/// The operation to plan. Every rank has the same Problem, except for `in_place` and for the
/// entries of `counts` and `registered` that a rank may not know.
struct Problem {
  Operation operation = Operation::kAllReduce;
  int ranks = 1;
  /// How many neighbouring ranks share memory (a window); 1 without shared memory.
  int ranks_per_host = 1;
  Rank root = 0;
  /// broadcast, reduce, all_reduce: the elements of the buffer. barrier: 0. Other operations: the
  /// elements of one rank's block, if all blocks have the same size.
  Elements count = {};
  /// The sizes of the blocks, if they differ; otherwise empty.
  ///   scatter, gather, all_gather, reduce_scatter: ranks entries, one for each block.
  ///   all_to_all: ranks * ranks entries; entry [i * ranks + j] is how much rank i sends to rank j.
  /// A rank writes 0 for entries that it does not know. In gather and scatter, a rank that is not
  /// the root may know only its own entry. In all_to_all, a rank may know only its row and column.
  std::vector<Elements> counts = {};
  /// Whether output and input of this rank share memory. Ranks may differ in this.
  ///   all_reduce, reduce: they are the same buffer.
  ///   broadcast: always the same buffer, whatever this flag says.
  ///   all_gather, gather (at the root): the input is block `rank` of the output.
  ///   reduce_scatter, scatter (at the root): the output is block `rank` of the input.
  ///   all_to_all: never in place.
  /// `placement` (problem.h) computes the offsets. An input that is not also output is only read.
  /// The output may hold any values until the operation ends.
  bool in_place = false;
  /// For proofs if ranks differ: `in_place` of each rank, instead of `in_place`. Running ranks
  /// leave this empty, because each knows only its own.
  std::vector<bool> in_place_of = {};
  /// For each rank: whether its input and output lie in registered memory, which the other ranks of
  /// its host can read and write. Empty if no rank's memory is registered. A rank needs to know
  /// only the entries of its host. For the root of a gather only the output counts, and for the
  /// root of a broadcast or scatter only the input.
  std::vector<bool> registered = {};
  /// How many elements of stage a rank may use. The planner splits larger work into pieces. Some
  /// operations need a limit of 2 or more.
  Elements stage_limit = {};

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The steps of one rank in a schedule.
struct Part {
  std::vector<Step> steps = {};
  /// Elements of stage that the schedule touches on any rank of the host: the same number on all
  /// ranks of the host.
  Elements stage = {};
  /// How far the operation raises the counters: the same on all ranks of the host; 0 without
  /// Signal.
  std::int64_t span = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// The parts of all ranks.
struct Schedule {
  Problem problem = {};
  std::vector<Part> parts = {};  // by rank

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace peal::schedule
