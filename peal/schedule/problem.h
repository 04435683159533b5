// How large a problem's buffers are and where its blocks lie: arithmetic that planners, the
// verifier and the engine must do alike. All offsets are positions in the buffers of
// Problem::counts.
#pragma once

#include <optional>

#include "peal/schedule/schedule.h"

namespace peal::schedule {

/// The host of a rank, counted from 0: ranks of one host are neighbours.
int host_of(const Problem&, Rank rank);

/// The ranks that share a host with `rank`, itself included.
Ranks host_ranks(const Problem&, Rank rank);

/// scatter, gather, all_gather, reduce_scatter: the size of a rank's block.
Elements block_count(const Problem&, Rank rank);

/// scatter, gather, all_gather, reduce_scatter: where a rank's block begins in the whole. Cost: as
/// many additions as ranks where counts differ.
Elements block_offset(const Problem&, Rank rank);

/// all_to_all: how much `from` sends to `to`.
Elements send_count(const Problem&, Rank from, Rank to);

/// all_to_all: where that begins in the input of `from`.
Elements send_offset(const Problem&, Rank from, Rank to);

/// all_to_all: where that begins in the output of `to`.
Elements receive_offset(const Problem&, Rank from, Rank to);

/// What a rank gives: 0 where it gives nothing (a receiver of a broadcast).
Elements input_size(const Problem&, Rank rank);

/// What a rank gets: 0 where it gets nothing (a rank that is not the root of a reduce).
Elements output_size(const Problem&, Rank rank);

/// Where input and output begin in the one memory that holds both.
struct Placement {
  Elements input = {};
  Elements output = {};

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// How a rank's input and output share memory, or nothing where they are two memories: out of
/// place, or because the rank has only one of them.
std::optional<Placement> placement(const Problem&, Rank rank);

}  // namespace peal::schedule
