#include "peal/plan/builder.h"

#include <algorithm>
#include <utility>

#include "peal/schedule/opening.h"

namespace peal::plan {

using schedule::Finish;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Wait;

Builder::Builder(const Problem& problem, Rank self)
    : problem_(problem), host_(schedule::host_ranks(problem, self)), self_(self) {}

void Builder::send(Position from, Rank peer, Elements count) {
  if (count > Elements(0)) move({own(from)}, {wire_to(peer, count)}, count);
}

void Builder::receive(Rank peer, Position to, Elements count) {
  if (count > Elements(0)) move({wire_from(peer, count)}, {own(to)}, count);
}

void Builder::receive_and_reduce(
    Message message, Value operand, Position to, Elements count, First first, Finish finish) {
  if (count == Elements(0)) return;
  Slice received = wire_from(message.peer, count);
  received.holds = message.holds;
  if (first == First::kPeer) {
    move({received, own(operand)}, {own(to)}, count, finish);
  } else {
    move({own(operand), received}, {own(to)}, count, finish);
  }
}

void Builder::copy(Position from, Position to, Elements count) { copy(own(from), own(to), count); }

void Builder::copy(Slice from, Slice to, Elements count) { move({from}, {to}, count); }

void Builder::fetch(Rank rank, Position from, Position to, Elements count) {
  copy(on(rank, from), own(to), count);
}

void Builder::reduce(Value a, Value b, Position to, Elements count, Finish finish) {
  move({own(a), own(b)}, {own(to)}, count, finish);
}

void Builder::move(schedule::InlineVector<Slice, 3> from,
                   schedule::InlineVector<Slice, 2> to,
                   Elements count,
                   Finish finish) {
  if (count == Elements(0)) return;
  const Move step{from, to, count, finish};
  if (writes_own_stage(step)) claim_stage();
  part_.steps.emplace_back(step);
}

schedule::InlineVector<Slice, 2> Builder::others(Position place) const {
  schedule::InlineVector<Slice, 2> slices;
  if (below().count > 0) slices.push_back(on(below(), place));
  if (above().count > 0) slices.push_back(on(above(), place));
  return slices;
}

schedule::InlineVector<Slice, 3> Builder::others_and(Position mine, Position theirs) const {
  schedule::InlineVector<Slice, 3> slices;
  if (below().count > 0) slices.push_back(on(below(), theirs));
  slices.push_back(own(mine));
  if (above().count > 0) slices.push_back(on(above(), theirs));
  return slices;
}

void Builder::open() {
  part_.steps = schedule::opening(problem_, self_);
  part_.span = opened_ = 1;
  for (const schedule::Step& step : part_.steps) {
    const Wait* wait = std::get_if<Wait>(&step);
    if (wait != nullptr && wait->ranks == neighbours()) stage_is_free_ = true;
  }
}

void Builder::signal(std::int64_t value) {
  part_.steps.emplace_back(Signal{opened_ + value});
  part_.span = opened_ + value;
}

void Builder::wait(Ranks ranks, std::int64_t value) {
  if (ranks.count > 0) part_.steps.emplace_back(Wait{ranks, opened_ + value});
}

void Builder::claim_stage() {
  if (!stage_is_free_ && neighbours().count > 0) {
    part_.steps.emplace_back(Wait{neighbours(), 0});
  }
  stage_is_free_ = true;
}

void Builder::wait_for_others(std::int64_t value) {
  wait(below(), value);
  wait(above(), value);
  stage_is_free_ = true;
}

void Builder::meet(std::int64_t value) {
  signal(value);
  wait(neighbours(), value);
  stage_is_free_ = true;
}

void Builder::send_token(Rank peer) { send(stage_at(Elements(0)), peer, Elements(1)); }

void Builder::receive_token(Rank peer) { receive(peer, stage_at(Elements(1)), Elements(1)); }

Part Builder::build(Elements stage) && {
  part_.stage = stage;
  const auto looks_back = [](const schedule::Step& step) {
    const Wait* wait = std::get_if<Wait>(&step);
    return wait != nullptr && wait->value == 0;
  };
  if (part_.span == 0) std::erase_if(part_.steps, looks_back);
  return std::move(part_);
}

Slice Builder::wire_to(Rank peer, Elements count) {
  const Elements offset = sent_[peer];
  sent_[peer] += count;
  return {Space::kWire, Ranks{peer}, offset};
}

Slice Builder::wire_from(Rank peer, Elements count) {
  const Elements offset = received_[peer];
  received_[peer] += count;
  return {Space::kWire, Ranks{peer}, offset};
}

bool Builder::writes_own_stage(const Move& move) const {
  return std::any_of(move.to.begin(), move.to.end(), [this](const Slice& slice) {
    return slice.space == Space::kStage && slice.ranks.contains(self_);
  });
}

}  // namespace peal::plan
