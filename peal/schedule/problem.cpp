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
  if (broadcast ? rank != problem.root : !problem.in_place) return std::nullopt;
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
