// The sizes of a problem's buffers and the offsets of its blocks: arithmetic that planners,
// verifier and engine share. All offsets are positions in the buffers that Problem::counts
// describes.
#pragma once

#include <optional>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

/// The host of a rank, counted from 0: ranks of one host are neighbours.
int host_of(const Problem&, Rank rank);

/// The ranks that share a host with `rank`, itself included.
Ranks host_ranks(const Problem&, Rank rank);

/// The other ranks of the host of `rank`. Includes `rank` itself if it is neither the first nor the
/// last of the host, because a progression cannot skip it then.
Ranks other_ranks_of_host(const Problem&, Rank rank);

/// A value for Problem::registered: the memory of every rank is registered.
std::vector<bool> all_registered(int ranks);

bool is_registered(const Problem&, Rank rank);

/// Whether input and output of `rank` share memory.
bool is_in_place(const Problem&, Rank rank);

/// Whether other ranks access this memory of `rank` if it is registered. In a broadcast, scatter or
/// gather, they access only the root's memory.
bool is_shared(const Problem&, Rank rank, Space space);

/// Whether all memory that the ranks of this rank's host share is registered, so that the ranks can
/// work on it directly.
bool works_on_registered(const Problem&, Rank rank);

/// scatter, gather, all_gather, reduce_scatter: the size of a rank's block.
Elements block_count(const Problem&, Rank rank);

/// scatter, gather, all_gather, reduce_scatter: where a rank's block begins in the whole buffer.
/// Cost: constant for equal blocks; otherwise one addition for each rank before.
Elements block_offset(const Problem&, Rank rank);

/// all_to_all: how many elements `from` sends to `to`.
Elements send_count(const Problem&, Rank from, Rank to);

/// all_to_all: where the elements for `to` begin in the input of `from`.
Elements send_offset(const Problem&, Rank from, Rank to);

/// all_to_all: where the elements from `from` begin in the output of `to`.
Elements receive_offset(const Problem&, Rank from, Rank to);

/// The size of the rank's input; 0 if the rank has no input (a receiver of a broadcast).
Elements input_size(const Problem&, Rank rank);

/// The size of the rank's output; 0 if the rank has no output (a rank that is not the root of a
/// reduce).
Elements output_size(const Problem&, Rank rank);

/// Where input and output begin in the one memory that contains both.
struct Placement {
  Elements input = {};
  Elements output = {};

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Where a rank's input and output lie in their shared memory. Empty if they are two separate
/// memories, or if the rank has only one of them.
std::optional<Placement> placement(const Problem&, Rank rank);

}  // namespace peal::schedule
