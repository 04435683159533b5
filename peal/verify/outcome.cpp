#include "peal/verify/outcome.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/schedule/problem.h"
#include "peal/verify/promise.h"

namespace peal::verify {
namespace {

using schedule::Move;
using schedule::Problem;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

bool keeps(World& world, const Promise& promise, const Site& site, Value value, Elements index) {
  if (promise.source != Promise::kAllRanks) {
    return value == world.expressions.input(site.operation, promise.source, index);
  }
  return value.index == index &&
         world.expressions.is_whole_reduction(value.expression, site.operation, world.ranks());
}

void check_promise(World& world, const Promise& promise, const Site& site) {
  Buffers& own = *world.buffers_of(site.rank, site.operation);
  const Range& range = promise.range;
  Elements done;
  for (const Run& run : own.output().peek({own.output_begin + range.begin, range.count})) {
    const Elements index = promise.index + done;
    if (!keeps(world, promise, site, run.first, index)) {
      const std::string source = promise.source == Promise::kAllRanks
                                     ? "all ranks' inputs"
                                     : fmt::format("rank {}'s input", promise.source);
      world.report(site,
                   fmt::format("ends with {} at output[{}], which should come from index {} of {}",
                               world.expressions.describe(run.first),
                               (range.begin + done).value,
                               index.value,
                               source));
    }
    done += run.count;
  }
}

void check_barrier(World& world, const Site& site) {
  for (Rank other = 0; other < world.ranks(); ++other) {
    const auto& of_other = world.buffers_of(other, site.operation);
    if (of_other && world.runner(site.rank).clock.knows(of_other->begun)) continue;
    world.report(site,
                 fmt::format("leaves the barrier, which rank {} need not have entered", other));
  }
}

void check_stuck(World& world, Rank rank) {
  const Site site = world.site(rank);
  if (site.operation == world.operations()) return;
  const Step& step = world.part(site.operation, rank).steps[static_cast<std::size_t>(site.step)];
  if (const auto* wait = std::get_if<Wait>(&step)) {
    const std::int64_t counter = world.counter(site.operation, wait->value);
    for (int i = 0; i < wait->ranks.count; ++i) {
      const Rank other = wait->ranks[i];
      if (world.announcement(other, counter) != nullptr) continue;
      world.report(site, fmt::format("waits for ever for rank {} to reach {}", other, wait->value));
    }
    return;
  }
  for (const Slice& from : std::get<Move>(step).from) {
    if (from.space != Space::kWire) continue;
    world.report(site, fmt::format("waits for ever for a message of rank {}", from.ranks.first));
  }
}

void check_same_bits(World& world, int operation) {
  if (world.problem(operation).operation != Operation::kAllReduce) return;
  const auto result = [&](Rank rank) {
    const Memory& output = world.buffers_of(rank, operation)->output();
    return output.peek(output.whole());
  };
  const Content first = result(0);
  for (Rank rank = 1; rank < world.ranks(); ++rank) {
    const Content other = result(rank);
    const auto [theirs, ours] = std::mismatch(first.begin(), first.end(), other.begin());
    if (theirs == first.end()) continue;
    const auto end = static_cast<int>(world.part(operation, rank).steps.size());
    world.report({rank, operation, end},
                 fmt::format("ends with {}, and rank 0 with {}: not the same bits",
                             world.expressions.describe(ours->first),
                             world.expressions.describe(theirs->first)));
  }
}

void check_stores(World& world) {
  const auto check = [&](const Memory& stage, std::size_t owner) {
    if (const auto lost = stage.unread_store(stage.whole())) {
      world.report(lost->site, fmt::format("stores to stage[{}] what nobody reads", owner));
    }
  };
  for (const Staging& staging : world.stagings) {
    for (std::size_t rank = 0; rank < staging.own.size(); ++rank) check(staging.own[rank], rank);
  }
  for (std::size_t rank = 0; rank < world.scratch.size(); ++rank) check(world.scratch[rank], rank);
}

void check_leftovers(World& world) {
  for (const auto& [ends, link] : world.links) {
    for (const Message& message : link.messages) {
      world.report(message.site, fmt::format("sends to rank {} what is not received", ends.second));
    }
  }
}

}  // namespace

void check_result(World& world, Rank rank) {
  const Site site = world.site(rank);
  const Problem& problem = world.problem(site.operation);
  for (const Promise& promise : promises(problem, rank)) check_promise(world, promise, site);
  if (problem.operation == Operation::kBarrier) check_barrier(world, site);
}

void check_outcome(World& world) {
  for (Rank rank = 0; rank < world.ranks(); ++rank) check_stuck(world, rank);
  // What follows needs all ranks at the end, and says nothing new where something was wrong.
  if (!world.violations.empty()) return;
  for (int k = 0; k < world.operations(); ++k) check_same_bits(world, k);
  check_stores(world);
  check_leftovers(world);
}

}  // namespace peal::verify
