#include "peal/plan/testing/costs.h"

#include <algorithm>
#include <bit>
#include <ostream>
#include <variant>

namespace peal::plan {

using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;

namespace {

bool is_whole(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduce ||
         operation == Operation::kBroadcast;
}

}  // namespace

int log2_floor(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

int log2_ceil(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

Problem problem_of(Operation operation, int ranks, int ranks_per_host) {
  const bool empty = operation == Operation::kBarrier;
  return {.operation = operation,
          .ranks = ranks,
          .ranks_per_host = ranks_per_host,
          .count = empty ? Elements(0) : kBlock * (is_whole(operation) ? ranks : 1),
          .in_place = operation == Operation::kBroadcast,
          .stage_limit = Elements(1 << 20)};
}

std::vector<Move> moves_of(const Part& part) {
  std::vector<Move> moves;
  for (const Step& step : part.steps) {
    if (const auto* move = std::get_if<Move>(&step)) moves.push_back(*move);
  }
  return moves;
}

Elements moved_by(const Part& part) {
  Elements moved;
  for (const Move& move : moves_of(part)) {
    for (const Slice& slice : move.from) moved += move.count * slice.ranks.count;
    for (const Slice& slice : move.to) moved += move.count * slice.ranks.count;
  }
  return moved;
}

std::int64_t signals_of(const Part& part) {
  return std::count_if(part.steps.begin(), part.steps.end(), [](const Step& step) {
    return std::holds_alternative<Signal>(step);
  });
}

void PrintTo(const Cost& cost, std::ostream* out) {
  *out << cost.messages << " messages, " << cost.sent.value << " elements";
}

Cost cost_of(const Part& part) {
  Cost cost;
  for (const Move& move : moves_of(part)) {
    if (move.to[0].space != Space::kWire) continue;
    ++cost.messages;
    cost.sent += move.count;
  }
  return cost;
}

}  // namespace peal::plan
