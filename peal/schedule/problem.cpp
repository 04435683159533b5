#include "peal/schedule/problem.h"

#include <algorithm>
#include <cassert>

namespace peal::schedule {
namespace {

std::size_t cell(const Problem& problem, Rank from, Rank to) {
  assert(problem.operation == Operation::kAllToAll);
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(problem.ranks) +
         static_cast<std::size_t>(to);
}

Elements all_blocks(const Problem& problem) { return block_offset(problem, problem.ranks); }

}  // namespace

int host_of(const Problem& problem, Rank rank) { return rank / problem.ranks_per_host; }

Ranks host_ranks(const Problem& problem, Rank rank) {
  const Rank first = host_of(problem, rank) * problem.ranks_per_host;
  return {.first = first, .count = std::min(problem.ranks_per_host, problem.ranks - first)};
}

Ranks other_ranks_of_host(const Problem& problem, Rank rank) {
  Ranks ranks = host_ranks(problem, rank);
  if (rank == ranks.first) {
    ++ranks.first;
    --ranks.count;
  } else if (rank == ranks.first + ranks.count - 1) {
    --ranks.count;
  }
  return ranks;
}

std::vector<bool> all_registered(int ranks) {
  return std::vector<bool>(static_cast<std::size_t>(ranks), true);
}

bool is_registered(const Problem& problem, Rank rank) {
  return !problem.registered.empty() && problem.registered[static_cast<std::size_t>(rank)];
}

bool is_in_place(const Problem& problem, Rank rank) {
  return problem.in_place_of.empty() ? problem.in_place
                                     : problem.in_place_of[static_cast<std::size_t>(rank)];
}

bool is_shared(const Problem& problem, Rank rank, Space space) {
  switch (problem.operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
      return rank == problem.root && space == Space::kInput;
    case Operation::kGather:
      return rank == problem.root && space == Space::kOutput;
    case Operation::kReduce:
    case Operation::kAllReduce:
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
      return space == Space::kInput || space == Space::kOutput;
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return false;
  }
  return false;
}

bool works_on_registered(const Problem& problem, Rank rank) {
  const Ranks host = host_ranks(problem, rank);
  for (int i = 0; i < host.count; ++i) {
    const bool shares =
        is_shared(problem, host[i], Space::kInput) || is_shared(problem, host[i], Space::kOutput);
    if (shares && !is_registered(problem, host[i])) return false;
  }
  return true;
}

Elements block_count(const Problem& problem, Rank rank) {
  return problem.counts.empty() ? problem.count : problem.counts[static_cast<std::size_t>(rank)];
}

Elements block_offset(const Problem& problem, Rank rank) {
  if (problem.counts.empty()) return problem.count * rank;
  Elements offset;
  for (Rank r = 0; r < rank; ++r) offset += block_count(problem, r);
  return offset;
}

Elements send_count(const Problem& problem, Rank from, Rank to) {
  return problem.counts.empty() ? problem.count : problem.counts[cell(problem, from, to)];
}

Elements send_offset(const Problem& problem, Rank from, Rank to) {
  if (problem.counts.empty()) return problem.count * to;
  Elements offset;
  for (Rank r = 0; r < to; ++r) offset += send_count(problem, from, r);
  return offset;
}

Elements receive_offset(const Problem& problem, Rank from, Rank to) {
  if (problem.counts.empty()) return problem.count * from;
  Elements offset;
  for (Rank r = 0; r < from; ++r) offset += send_count(problem, r, to);
  return offset;
}

Elements input_size(const Problem& problem, Rank rank) {
  switch (problem.operation) {
    case Operation::kBroadcast:
      return rank == problem.root ? problem.count : Elements(0);
    case Operation::kReduce:
    case Operation::kAllReduce:
      return problem.count;
    case Operation::kScatter:
      return rank == problem.root ? all_blocks(problem) : Elements(0);
    case Operation::kGather:
    case Operation::kAllGather:
      return block_count(problem, rank);
    case Operation::kReduceScatter:
      return all_blocks(problem);
    case Operation::kAllToAll:
      return send_offset(problem, rank, problem.ranks);
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return Elements(0);
  }
  return Elements(0);
}

Elements output_size(const Problem& problem, Rank rank) {
  switch (problem.operation) {
    case Operation::kBroadcast:
    case Operation::kAllReduce:
      return problem.count;
    case Operation::kReduce:
      return rank == problem.root ? problem.count : Elements(0);
    case Operation::kScatter:
    case Operation::kReduceScatter:
      return block_count(problem, rank);
    case Operation::kGather:
      return rank == problem.root ? all_blocks(problem) : Elements(0);
    case Operation::kAllGather:
      return all_blocks(problem);
    case Operation::kAllToAll:
      return receive_offset(problem, problem.ranks, rank);
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return Elements(0);
  }
  return Elements(0);
}

std::optional<Placement> placement(const Problem& problem, Rank rank) {
  const bool rooted = problem.operation == Operation::kReduce ||
                      problem.operation == Operation::kGather ||
                      problem.operation == Operation::kScatter;
  if (rooted && rank != problem.root) return std::nullopt;
  const bool broadcast = problem.operation == Operation::kBroadcast;
  if (broadcast ? rank != problem.root : !is_in_place(problem, rank)) return std::nullopt;
  switch (problem.operation) {
    case Operation::kBroadcast:
    case Operation::kReduce:
    case Operation::kAllReduce:
      return Placement{};
    case Operation::kGather:
    case Operation::kAllGather:
      return Placement{.input = block_offset(problem, rank), .output = Elements(0)};
    case Operation::kScatter:
    case Operation::kReduceScatter:
      return Placement{.input = Elements(0), .output = block_offset(problem, rank)};
    case Operation::kAllToAll:
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace peal::schedule
