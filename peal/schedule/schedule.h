// The noun of the library: a collective operation as a value. What each rank does, step by step, is
// planned by `plan`, proved by `verify` and executed by `engine`; no algorithm exists outside of
// it.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "peal/base/inline_vector.h"
#include "peal/base/operation.h"
#include "peal/base/units.h"

namespace peal::schedule {

/// Where elements live. Offsets count elements.
enum class Space : std::uint8_t {
  kInput,   // what the rank was given
  kOutput,  // what the rank shall end with
  kStage,   // scratch of the group; other ranks of the host reach it where a window exists
  kWire,    // the stream between two ranks; the offset is the position in it since the operation
            // began
};

/// "input", "output", "stage", "wire"; "invalid" for a number that is none.
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

/// What a source of a reduction holds: the contribution of a rank, or a partial result, which
/// earlier moves have reduced and not finished. A reduction applies the operator's first step to
/// each contribution once, and not to partial results. Example: an average scales contributions, so
/// that no partial sum overflows.
enum class Holds : std::uint8_t { kContribution, kPartial };

/// The same place on each of some ranks. On the wire the rank is the peer at the other end.
struct Slice {
  Space space = Space::kInput;
  Ranks ranks = {};
  Elements offset = {};
  /// For a source of a Move that reduces or finishes; kContribution elsewhere.
  Holds holds = Holds::kContribution;

  friend bool operator==(const Slice&, const Slice&) = default;
};

/// Whether a Move completes a reduction. Completing applies the operator's last step, once.
/// Example: an average divides by the factor that its scaling has left of the number of ranks. Each
/// element of a reduced result is completed exactly once.
enum class Finish : std::uint8_t { kNo, kYes };

/// Moves `count` elements.
/// One source place is a copy; several are a reduction in the order listed, left to right.
/// A source on the wire is a receive, a target on the wire a send; several targets are stores into
/// several memories. A target on the wire is the only target and has exactly one source: an own
/// slice. A send does not block: its source is read at some moment between this step and the end of
/// the matching receive, and must not change meanwhile. A receive takes exactly what one send gave.
struct Move {
  InlineVector<Slice, 3> from = {};
  InlineVector<Slice, 2> to = {};
  Elements count = {};
  Finish finish = Finish::kNo;

  friend bool operator==(const Move&, const Move&) = default;
};

/// Whether the move leaves values as they are: it has one source, and does not finish.
bool is_copy(const Move&);

/// The rank's own counter becomes base + value; what the rank did before is visible to who sees it.
/// The base is where the counters of all ranks stood when the operation began. A rank's values
/// ascend up to the span.
struct Signal {
  std::int64_t value = 0;
  friend bool operator==(const Signal&, const Signal&) = default;
};

/// Until the counter of each of `ranks` is at least base + value. A value of 0 looks back: those
/// ranks have left the operations that staged where this one does (scratch.h). The own rank is
/// listed only where a progression cannot leave it out.
struct Wait {
  Ranks ranks = {};
  std::int64_t value = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};

using Step = std::variant<Move, Signal, Wait>;

/// Whether the ranks of a host may touch the memory that holds each other's input and output.
enum class Access : std::uint8_t { kForeign, kRegistered };

/// What is to be planned. The same value on every rank, but for what `counts` says.
struct Problem {
  Operation operation = Operation::kAllReduce;
  int ranks = 1;
  /// How many neighbouring ranks share memory (a window); 1 where none do.
  int ranks_per_host = 1;
  Rank root = 0;
  /// broadcast, reduce, all_reduce: the elements of the buffer. Others: of one rank's block, where
  /// all blocks are alike. barrier: 0.
  Elements count = {};
  /// Where blocks differ. scatter, gather, all_gather, reduce_scatter: ranks entries, one a block.
  /// all_to_all: ranks * ranks entries, [i * ranks + j] what i sends to j. Empty where all are
  /// alike. gather and scatter: a rank that is not the root may know its own entry only;
  /// all_to_all: a rank may know its own row and column only. Entries that a rank does not know are
  /// 0 there.
  std::vector<Elements> counts = {};
  /// The output is the input's own memory. all_reduce, reduce: same place; broadcast: always;
  /// all_gather, gather (at the root): the input is block `rank` of the output; reduce_scatter,
  /// scatter (at the root): the output is block `rank` of the input. all_to_all: never. Where one
  /// lies in the other is `placement` (problem.h). A rank's input is only read, except where it is
  /// also output; output may hold anything until the end.
  bool in_place = false;
  Access access = Access::kForeign;
  /// How many elements of stage a rank may use; the planner cuts larger work into pieces.
  Elements stage_limit = {};

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// One rank's share of a schedule.
struct Part {
  std::vector<Step> steps = {};
  /// Elements of stage that any rank touches on behalf of this schedule: the same on all ranks.
  Elements stage = {};
  /// How far the counters advance: the same on all ranks, 0 if it has no Signal.
  std::int64_t span = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// All parts.
struct Schedule {
  Problem problem = {};
  std::vector<Part> parts = {};  // by rank

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace peal::schedule
