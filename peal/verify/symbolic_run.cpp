#include "peal/verify/symbolic_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/schedule/problem.h"
#include "peal/verify/outcome.h"

namespace peal::verify {
namespace {

using schedule::Finish;
using schedule::Holds;
using schedule::Move;
using schedule::Problem;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

enum class Progress : std::uint8_t { kStuck, kMade };

/// One rank at its current step.
class RankRun {
 public:
  RankRun(State& state, Rank rank) : state_(state), rank_(rank), self_(state.runner(rank)) {}

  /// Begins the next operation, does a step, or ends the operation.
  Progress advance();

 private:
  void begin();
  void end();
  Progress step(const Move& move);
  Progress step(const Signal& signal);
  Progress step(const Wait& wait);
  void send(const Slice& from, const Slice& to, Elements count);
  std::optional<Content> receive(const Slice& from, Elements count);

  void report_known(const Wait& wait, Rank rank);

  Site site() const { return state_.site(rank_); }
  Access access(AccessKind kind) const { return {kind, state_.now(rank_), site()}; }

  State& state_;
  Rank rank_;
  Runner& self_;
};

Progress RankRun::advance() {
  if (self_.operation == state_.operations()) return Progress::kStuck;
  ++self_.time;
  self_.clock.learn(state_.now(rank_));
  const std::vector<Step>& steps = state_.part(self_.operation, rank_).steps;
  if (self_.step == static_cast<int>(steps.size())) {
    end();
    ++self_.operation;
    self_.step = -1;
    return Progress::kMade;
  }
  if (self_.step < 0) {
    begin();
  } else {
    const Step& next = steps[static_cast<std::size_t>(self_.step)];
    const Progress progress = std::visit([&](const auto& kind) { return step(kind); }, next);
    if (progress == Progress::kStuck) return progress;
  }
  ++self_.step;
  return Progress::kMade;
}

void RankRun::begin() {
  const Problem& problem = state_.problem(self_.operation);
  const Elements input = input_size(problem, rank_);
  const Elements output = output_size(problem, rank_);
  const Access user = access(AccessKind::kUse);
  Buffers made{.memories = {}, .input_begin = {}, .output_begin = {}, .begun = user.event};
  if (const auto shared = placement(problem, rank_)) {
    made.input_begin = shared->input;
    made.output_begin = shared->output;
    const Elements size = std::max(shared->input + input, shared->output + output);
    made.memories.emplace_back(size, std::vector{user});
  } else {
    made.memories.emplace_back(input, std::vector{user});
    made.memories.emplace_back(output, std::vector{user});
  }
  if (input > Elements(0)) {
    const Value first = state_.expressions.input(self_.operation, rank_, Elements(0));
    made.input().write(made.input_begin, {{first, input}}, user, Memory::Purpose::kWanted);
  }
  state_.buffers_of(rank_, self_.operation) = std::move(made);
}

void RankRun::end() {
  for (const auto& [ends, link] : state_.links) {
    if (ends.first == rank_) self_.clock.learn(link.last_read);
  }
  check_result(state_, rank_);
  const Access user = access(AccessKind::kUse);
  Buffers& own = *state_.buffers_of(rank_, self_.operation);
  for (Memory& memory : own.memories) {
    if (const auto other = memory.unordered_with_write(memory.whole(), self_.clock)) {
      const Space space = &memory == &own.output() ? Space::kOutput : Space::kInput;
      state_.report_race({space, rank_, Elements(0), memory.whole().count}, user, *other);
    }
    memory.hand_over(user);
  }
}

Progress RankRun::step(const Move& move) {
  if (move.to[0].space == Space::kWire) {
    send(move.from[0], move.to[0], move.count);
    return Progress::kMade;
  }
  std::optional<Content> received;
  for (const Slice& from : move.from) {
    if (from.space != Space::kWire) continue;
    received = receive(from, move.count);
    if (!received) return Progress::kStuck;
  }
  const bool reduces = !is_copy(move);
  std::vector<Content> terms;
  const auto add = [&](const Slice& from, Content content) {
    const bool begins = reduces && from.holds == Holds::kContribution;
    terms.push_back(begins ? state_.expressions.begin(std::move(content)) : std::move(content));
  };
  for (const Slice& from : move.from) {
    if (from.space == Space::kWire) {
      add(from, std::move(*received));
      continue;
    }
    for (int i = 0; i < from.ranks.count; ++i) {
      const RankSlice source{from.space, from.ranks[i], from.offset, move.count};
      add(from, state_.load(source, access(AccessKind::kRead)));
    }
  }
  Content result = state_.expressions.reduce(terms);
  if (move.finish == Finish::kYes) result = state_.expressions.finish(std::move(result));
  for (const Slice& to : move.to) {
    for (int i = 0; i < to.ranks.count; ++i) {
      const RankSlice target{to.space, to.ranks[i], to.offset, move.count};
      state_.store(target, result, access(AccessKind::kWrite));
    }
  }
  return Progress::kMade;
}

void RankRun::send(const Slice& from, const Slice& to, Elements count) {
  const Rank peer = to.ranks.first;
  Link& link = state_.link(rank_, peer);
  Elements& position = link.sent[self_.operation];
  if (to.offset != position) {
    state_.report(site(),
                  fmt::format("says position {}, but position {} is next in the stream to rank {}",
                              to.offset.value,
                              position.value,
                              peer));
  }
  ++link.last_read.time;
  const Access read{AccessKind::kRead, link.last_read, site()};
  Message message{.position = position,
                  .count = count,
                  .site = site(),
                  .content = state_.load({from.space, rank_, from.offset, count}, read),
                  .clock = self_.clock};
  message.clock.learn(link.last_read);
  link.messages.push_back(std::move(message));
  position += count;
}

std::optional<Content> RankRun::receive(const Slice& from, Elements count) {
  const Rank peer = from.ranks.first;
  Link& link = state_.link(peer, rank_);
  if (link.messages.empty()) return std::nullopt;
  Message message = std::move(link.messages.front());
  link.messages.pop_front();
  self_.clock.learn(message.clock);
  const bool matches = message.site.operation == self_.operation &&
                       message.position == from.offset && message.count == count;
  if (matches) return std::move(message.content);
  state_.report(site(),
                fmt::format("receives {} elements at {} from rank {}, which sends {} at {} at step "
                            "{} of operation {}",
                            count.value,
                            from.offset.value,
                            peer,
                            message.count.value,
                            message.position.value,
                            message.site.step,
                            message.site.operation));
  return Content{{Value{}, count}};
}

Progress RankRun::step(const Signal& signal) {
  self_.announcements.push_back({.counter = state_.counter(rank_, self_.operation, signal.value),
                                 .site = site(),
                                 .event = state_.now(rank_),
                                 .clock = self_.clock});
  return Progress::kMade;
}

void RankRun::report_known(const Wait& wait, Rank rank) {
  state_.report(
      site(),
      fmt::format("waits for rank {} to reach {}, which it already knows", rank, wait.value));
}

Progress RankRun::step(const Wait& wait) {
  const std::int64_t counter = state_.counter(rank_, self_.operation, wait.value);
  for (int i = 0; i < wait.ranks.count; ++i) {
    if (state_.announcement(wait.ranks[i], counter) == nullptr) return Progress::kStuck;
  }
  // A wait for 0 lists all other ranks. Some of their signals may be known from the opening, or
  // from an earlier operation of this sequence that another sequence would not have. The list may
  // also contain this rank, if a progression cannot skip it.
  const bool looks_back = wait.value == 0;
  bool learns = looks_back && self_.operation > 0;
  const VectorClock before = self_.clock;
  for (int i = 0; i < wait.ranks.count; ++i) {
    const Announcement& said = *state_.announcement(wait.ranks[i], counter);
    const bool is_known = before.knows(said.event);
    learns = learns || !is_known;
    if (is_known && !looks_back && wait.ranks[i] != rank_) report_known(wait, wait.ranks[i]);
    self_.clock.learn(said.clock);
  }
  if (!learns && looks_back) report_known(wait, wait.ranks.first);
  return Progress::kMade;
}

}  // namespace

void run(State& state, std::size_t most) {
  const auto go_on = [&] { return state.violations.size() < most; };
  for (bool moved = true; moved && go_on();) {
    moved = false;
    for (Rank rank = 0; rank < state.ranks(); ++rank) {
      while (go_on() && RankRun(state, rank).advance() == Progress::kMade) moved = true;
    }
  }
}

}  // namespace peal::verify
