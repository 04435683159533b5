#include "peal/schedule/cost.h"

#include <algorithm>

namespace peal::schedule {
namespace {

void add(Cost& cost, const Move& move) {
  const auto touch = [&](const Slice& slice) {
    if (slice.space != Space::kWire) cost.touched += move.count * slice.ranks.count;
  };
  for (const Slice& from : move.from) touch(from);
  for (const Slice& to : move.to) {
    touch(to);
    if (to.space != Space::kWire) continue;
    ++cost.messages;
    cost.sent += move.count;
  }
}

}  // namespace

Cost cost_of(const Part& part) {
  Cost cost;
  for (const Step& step : part.steps) {
    if (const auto* move = std::get_if<Move>(&step)) add(cost, *move);
    if (std::holds_alternative<Signal>(step)) ++cost.signals;
  }
  return cost;
}

Cost busiest(const Schedule& schedule) {
  Cost most;
  for (const Part& part : schedule.parts) {
    const Cost cost = cost_of(part);
    most.messages = std::max(most.messages, cost.messages);
    most.sent = std::max(most.sent, cost.sent);
    most.touched = std::max(most.touched, cost.touched);
    most.signals = std::max(most.signals, cost.signals);
  }
  return most;
}

}  // namespace peal::schedule
