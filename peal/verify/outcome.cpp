#include "peal/verify/outcome.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/verify/postcondition.h"

namespace peal::verify {
namespace {

using schedule::Move;
using schedule::Problem;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

bool holds(State& state,
           const Postcondition& postcondition,
           const Site& site,
           Value value,
           Elements index) {
  if (postcondition.source != Postcondition::kAllRanks) {
    return value == state.expressions.input(site.operation, postcondition.source, index);
  }
  return value.index == index &&
         state.expressions.is_whole_reduction(value.expression, site.operation, state.ranks());
}

void check_postcondition(State& state, const Postcondition& postcondition, const Site& site) {
  Buffers& own = *state.buffers_of(site.rank, site.operation);
  const Range& range = postcondition.range;
  Elements done;
  for (const Run& run : own.output().peek({own.output_begin + range.begin, range.count})) {
    const Elements index = postcondition.index + done;
    if (!holds(state, postcondition, site, run.first, index)) {
      const std::string source = postcondition.source == Postcondition::kAllRanks
                                     ? "all ranks' inputs"
                                     : fmt::format("rank {}'s input", postcondition.source);
      state.report(
          site,
          fmt::format(
              "ends with {} at index {} of its output, which should come from index {} of {}",
              state.expressions.describe(run.first),
              (range.begin + done).value,
              index.value,
              source));
    }
    done += run.count;
  }
}

void check_barrier(State& state, const Site& site) {
  for (Rank other = 0; other < state.ranks(); ++other) {
    const auto& of_other = state.buffers_of(other, site.operation);
    if (of_other && state.runner(site.rank).clock.knows(of_other->begun)) continue;
    state.report(site,
                 fmt::format("leaves the barrier, which rank {} may not have entered", other));
  }
}

void check_stuck(State& state, Rank rank) {
  const Site site = state.site(rank);
  if (site.operation == state.operations()) return;
  const Step& step = state.part(site.operation, rank).steps[static_cast<std::size_t>(site.step)];
  if (const auto* wait = std::get_if<Wait>(&step)) {
    const std::int64_t counter = state.counter(rank, site.operation, wait->value);
    for (int i = 0; i < wait->ranks.count; ++i) {
      const Rank other = wait->ranks[i];
      if (state.announcement(other, counter) != nullptr) continue;
      state.report(site, fmt::format("waits forever for rank {} to reach {}", other, wait->value));
    }
    return;
  }
  for (const Slice& from : std::get<Move>(step).from) {
    if (from.space != Space::kWire) continue;
    state.report(site, fmt::format("waits forever for a message of rank {}", from.ranks.first));
  }
}

void check_same_bits(State& state, int operation) {
  if (state.problem(operation).operation != Operation::kAllReduce) return;
  const auto result = [&](Rank rank) {
    const Memory& output = state.buffers_of(rank, operation)->output();
    return output.peek(output.whole());
  };
  const Content first = result(0);
  for (Rank rank = 1; rank < state.ranks(); ++rank) {
    const Content other = result(rank);
    const auto [theirs, ours] = std::mismatch(first.begin(), first.end(), other.begin());
    if (theirs == first.end()) continue;
    const auto end = static_cast<int>(state.part(operation, rank).steps.size());
    state.report({rank, operation, end},
                 fmt::format("ends with {}, and rank 0 with {}: not the same bits",
                             state.expressions.describe(ours->first),
                             state.expressions.describe(theirs->first)));
  }
}

void check_stores(State& state) {
  const auto check = [&](const Memory& stage, std::size_t owner) {
    if (const auto lost = stage.unread_store(stage.whole())) {
      state.report(lost->site, fmt::format("stores data to stage[{}] that no rank reads", owner));
    }
  };
  for (const Host& host : state.hosts) {
    for (const Staging& staging : host.stagings) {
      auto rank = static_cast<std::size_t>(host.ranks.first);
      for (const Memory& own : staging.own) check(own, rank++);
    }
  }
  for (std::size_t rank = 0; rank < state.scratch.size(); ++rank) check(state.scratch[rank], rank);
}

void check_leftovers(State& state) {
  for (const auto& [ends, link] : state.links) {
    for (const Message& message : link.messages) {
      state.report(message.site,
                   fmt::format("sends rank {} a message that is not received", ends.second));
    }
  }
}

}  // namespace

void check_result(State& state, Rank rank) {
  const Site site = state.site(rank);
  const Problem& problem = state.problem(site.operation);
  for (const Postcondition& postcondition : postconditions(problem, rank)) {
    check_postcondition(state, postcondition, site);
  }
  if (problem.operation == Operation::kBarrier) check_barrier(state, site);
}

void check_outcome(State& state) {
  for (Rank rank = 0; rank < state.ranks(); ++rank) check_stuck(state, rank);
  // These checks need all ranks at the end, and add nothing if there are violations already.
  if (!state.violations.empty()) return;
  for (int k = 0; k < state.operations(); ++k) check_same_bits(state, k);
  check_stores(state);
  check_leftovers(state);
}

}  // namespace peal::verify
