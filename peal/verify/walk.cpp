#include "peal/verify/walk.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/schedule/problem.h"
#include "peal/verify/promise.h"

namespace peal::verify {
namespace {

using schedule::Finish;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Ranks;
using schedule::Schedule;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

/// When the unknown operations before the sequence end for a rank, and when its first one begins.
constexpr std::int64_t kBefore = 1;
constexpr std::int64_t kBegin = 2;

Memory stage_before(const Problem& problem, Rank owner, Elements size) {
  std::vector<Access> users;
  const Ranks host = host_ranks(problem, owner);
  for (int i = 0; i < host.count; ++i) {
    const std::int64_t until = host[i] == owner ? kBegin : kBefore;
    users.push_back(
        {.kind = AccessKind::kUse, .event = {host[i], until}, .site = {host[i], -1, 0}});
  }
  return Memory(size, std::move(users));
}

std::string range_words(const Range& range) {
  return fmt::format("[{}:{}]", range.begin.value, range.end().value);
}

std::string access_words(const Access& access) {
  const Site& site = access.site;
  if (site.operation < 0) return fmt::format("an earlier operation of rank {}", site.rank);
  if (access.kind == AccessKind::kUse) return fmt::format("the user of rank {}", site.rank);
  return fmt::format("the {} of rank {} at step {} of operation {}",
                     access.kind == AccessKind::kRead ? "read" : "write",
                     site.rank,
                     site.step,
                     site.operation);
}

}  // namespace

Walk::Walk(std::span<const Schedule> schedules)
    : schedules_(schedules),
      bases_{0},
      runners_(static_cast<std::size_t>(schedules.front().problem.ranks)),
      buffers_(schedules.size(), std::vector<std::optional<Buffers>>(runners_.size())) {
  Elements stage;
  for (const Schedule& schedule : schedules) {
    stage = std::max(stage, schedule.parts.front().stage);
    bases_.push_back(bases_.back() + schedule.parts.front().span);
  }
  for (Rank rank = 0; rank < static_cast<Rank>(runners_.size()); ++rank) {
    stages_.push_back(stage_before(schedules.front().problem, rank, stage));
    Runner& self = runner(rank);
    self.time = kBefore;
    self.clock.learn(now(rank));
    self.announcements.push_back({.value = 0,
                                  .event = now(rank),
                                  .clock = self.clock,
                                  .site = {rank, -1, 0},
                                  .awaited = true});
  }
}

std::vector<Violation> Walk::run(std::size_t most) {
  const auto ranks = static_cast<Rank>(runners_.size());
  const auto full = [&] { return violations_.size() >= most; };
  for (bool moved = true; moved && !full();) {
    moved = false;
    for (Rank rank = 0; rank < ranks; ++rank) {
      while (!full() && advance(rank) == Progress::kMoved) moved = true;
    }
  }
  if (!full()) {
    for (Rank rank = 0; rank < ranks; ++rank) check_stuck(rank);
  }
  if (violations_.empty()) {
    for (int k = 0; k < static_cast<int>(schedules_.size()); ++k) check_same_bits(k);
    check_stages();
    check_leftovers();
  }
  return std::move(violations_);
}

Walk::Progress Walk::advance(Rank rank) {
  Runner& self = runner(rank);
  if (self.operation == static_cast<int>(schedules_.size())) return Progress::kStuck;
  const std::vector<Step>& steps = schedules_[static_cast<std::size_t>(self.operation)]
                                       .parts[static_cast<std::size_t>(rank)]
                                       .steps;
  ++self.time;
  self.clock.learn(now(rank));
  if (self.step < 0) {
    begin(rank);
    self.step = 0;
    return Progress::kMoved;
  }
  if (self.step == static_cast<int>(steps.size())) {
    end(rank);
    ++self.operation;
    self.step = -1;
    return Progress::kMoved;
  }
  const Progress progress = std::visit([&](const auto& at) { return step(rank, at); },
                                       steps[static_cast<std::size_t>(self.step)]);
  if (progress == Progress::kMoved) ++self.step;
  return progress;
}

void Walk::begin(Rank rank) {
  const Site at = site(rank);
  const Problem& problem = schedule_of(at).problem;
  const auto shared = placement(problem, rank);
  const Elements input = input_size(problem, rank);
  const Elements output = output_size(problem, rank);
  const Access user{AccessKind::kUse, now(rank), at};

  Buffers made{.memories = {}, .input_begin = {}, .output_begin = {}, .begun = now(rank)};
  if (shared) {
    made.input_begin = shared->input;
    made.output_begin = shared->output;
    made.memories.emplace_back(std::max(shared->input + input, shared->output + output),
                               std::vector{user});
  } else {
    made.memories.emplace_back(input, std::vector{user});
    made.memories.emplace_back(output, std::vector{user});
  }
  if (input > Elements(0)) {
    const Run given{expressions_.input(at.operation, rank, Elements(0)), input};
    made.memories.front().write(made.input_begin, {given}, user, Memory::Purpose::kWanted);
  }
  buffers(at.operation, rank) = std::move(made);
}

void Walk::end(Rank rank) {
  const Site at = site(rank);
  // The engine does not end an operation before its own sends have left.
  for (const auto& [ends, link] : links_) {
    if (ends.first == rank) runner(rank).clock.learn(link.last_sent);
  }
  check_output(rank);
  const Access user{AccessKind::kUse, now(rank), at};
  std::vector<Memory>& memories = buffers(at.operation, rank)->memories;
  for (Memory& memory : memories) {
    const Space space = &memory == &memories.back() ? Space::kOutput : Space::kInput;
    const Place all{&memory, memory.whole(), space, rank};
    if (const auto other = memory.unordered_with_write(all.range, runner(rank).clock)) {
      report_race(all, user, *other);
    }
    memory.hand_over(user);
  }
  check_barrier(rank);
}

Walk::Progress Walk::step(Rank rank, const Move& move) {
  if (move.to[0].space == Space::kWire) {
    send(rank, move);
    return Progress::kMoved;
  }
  std::vector<Content> terms;
  for (const Slice& from : move.from) {
    if (from.space != Space::kWire) continue;
    auto received = receive(rank, from, move.count);
    if (!received) return Progress::kStuck;
    terms.push_back(std::move(*received));
  }
  std::size_t next = 0;
  for (const Slice& from : move.from) {
    if (from.space == Space::kWire) {
      ++next;
      continue;
    }
    for (int i = 0; i < from.ranks.count; ++i, ++next) {
      const auto source = place(rank, from, from.ranks[i], move.count);
      if (!source) return Progress::kMoved;
      const Access by{AccessKind::kRead, now(rank), site(rank)};
      terms.insert(terms.begin() + static_cast<std::ptrdiff_t>(next), load(*source, by));
    }
  }
  Content result = expressions_.reduce(terms);
  if (move.finish == Finish::kYes) result = expressions_.finish(std::move(result));
  for (const Slice& to : move.to) {
    for (int i = 0; i < to.ranks.count; ++i) {
      const auto target = place(rank, to, to.ranks[i], move.count);
      if (!target) return Progress::kMoved;
      store(*target, result, {AccessKind::kWrite, now(rank), site(rank)});
    }
  }
  return Progress::kMoved;
}

void Walk::send(Rank rank, const Move& move) {
  const Site at = site(rank);
  const auto source = place(rank, move.from[0], rank, move.count);
  Link& out = link(rank, move.to[0].ranks.first);
  ++out.last_sent.time;
  Elements& position = out.sent[at.operation];
  if (move.to[0].offset != position) {
    report(at,
           fmt::format("sends as position {} what is at {} of the stream to rank {}",
                       move.to[0].offset.value,
                       position.value,
                       move.to[0].ranks.first));
  }
  Clock known = runner(rank).clock;
  known.learn(out.last_sent);
  out.messages.push_back({.operation = at.operation,
                          .position = position,
                          .count = move.count,
                          .content = load(*source, {AccessKind::kRead, out.last_sent, at}),
                          .clock = std::move(known),
                          .site = at});
  position += move.count;
}

std::optional<Content> Walk::receive(Rank rank, const Slice& from, Elements count) {
  const Site at = site(rank);
  Link& in = link(from.ranks.first, rank);
  if (in.messages.empty()) return std::nullopt;
  const Message message = std::move(in.messages.front());
  in.messages.pop_front();
  if (message.operation != at.operation || message.position != from.offset ||
      message.count != count) {
    report(at,
           fmt::format("receives {} elements at {} from rank {}, which sends {} at {} at step {} "
                       "of operation {}",
                       count.value,
                       from.offset.value,
                       from.ranks.first,
                       message.count.value,
                       message.position.value,
                       message.site.step,
                       message.operation));
    return Content{{Value{}, count}};
  }
  runner(rank).clock.learn(message.clock);
  return message.content;
}

Walk::Progress Walk::step(Rank rank, const Signal& signal) {
  Runner& self = runner(rank);
  self.announcements.push_back({.value = base(self.operation) + signal.value,
                                .event = now(rank),
                                .clock = self.clock,
                                .site = site(rank)});
  return Progress::kMoved;
}

Walk::Progress Walk::step(Rank rank, const Wait& wait) {
  Runner& self = runner(rank);
  const std::int64_t value = base(self.operation) + wait.value;
  for (int i = 0; i < wait.ranks.count; ++i) {
    if (announcement(wait.ranks[i], value) == nullptr) return Progress::kStuck;
  }
  const Clock before = self.clock;
  for (int i = 0; i < wait.ranks.count; ++i) {
    Announcement& seen = *announcement(wait.ranks[i], value);
    const bool is_own = wait.ranks[i] == rank;
    if (!is_own) seen.awaited = true;
    if (!is_own && before.knows(seen.event)) {
      report(site(rank),
             fmt::format("waits for rank {} to reach {}, and knows already that it has",
                         wait.ranks[i],
                         wait.value));
    }
    self.clock.learn(seen.clock);
  }
  return Progress::kMoved;
}

Walk::Announcement* Walk::announcement(Rank rank, std::int64_t value) {
  std::vector<Announcement>& all = runner(rank).announcements;
  const auto at =
      std::lower_bound(all.begin(), all.end(), value, [](const Announcement& a, std::int64_t v) {
        return a.value < v;
      });
  return at == all.end() ? nullptr : &*at;
}

Content Walk::load(const Place& from, const Access& by) {
  if (const auto other = from.memory->unordered_with_read(from.range, runner(by.site.rank).clock)) {
    report_race(from, by, *other);
  }
  Content content = from.memory->read(from.range, by);
  const bool is_garbage = std::any_of(content.begin(), content.end(), [](const Run& run) {
    return run.first.expression == kNothing;
  });
  if (is_garbage && schedule_of(by.site).problem.operation != Operation::kBarrier) {
    report(by.site,
           fmt::format("reads {} {} of rank {}, where nobody has written",
                       name_of(from.space),
                       range_words(from.range),
                       from.owner));
  }
  return content;
}

void Walk::store(const Place& to, const Content& content, const Access& by) {
  const bool is_barrier = schedule_of(by.site).problem.operation == Operation::kBarrier;
  if (const auto other = to.memory->unordered_with_write(to.range, runner(by.site.rank).clock)) {
    report_race(to, by, *other);
  }
  if (const auto lost = to.memory->unread_store(to.range)) {
    report(lost->site,
           fmt::format("stores to {} of rank {} what nobody reads before step {} of rank {} "
                       "overwrites it",
                       name_of(to.space),
                       to.owner,
                       by.site.step,
                       by.site.rank));
  }
  to.memory->write(to.range.begin,
                   content,
                   by,
                   is_barrier ? Memory::Purpose::kWanted : Memory::Purpose::kToBeRead);
}

std::optional<Walk::Place> Walk::place(Rank self, const Slice& slice, Rank owner, Elements count) {
  const Site at = site(self);
  if (slice.space == Space::kStage) {
    return Place{
        &stages_[static_cast<std::size_t>(owner)], {slice.offset, count}, slice.space, owner};
  }
  std::optional<Buffers>& of_owner = buffers(at.operation, owner);
  if (!of_owner) {
    report(at,
           fmt::format("touches {} of rank {}, which need not have begun the operation",
                       name_of(slice.space),
                       owner));
    return std::nullopt;
  }
  const bool is_input = slice.space == Space::kInput;
  Memory& memory = is_input ? of_owner->memories.front() : of_owner->memories.back();
  const Elements begin = is_input ? of_owner->input_begin : of_owner->output_begin;
  return Place{&memory, {begin + slice.offset, count}, slice.space, owner};
}

void Walk::check_stuck(Rank rank) {
  const Runner& self = runner(rank);
  if (self.operation == static_cast<int>(schedules_.size())) return;
  const Part& part = schedule_of(site(rank)).parts[static_cast<std::size_t>(rank)];
  const Step& at = part.steps[static_cast<std::size_t>(self.step)];
  if (const auto* wait = std::get_if<Wait>(&at)) {
    report(site(rank), fmt::format("waits for ever for a counter to reach {}", wait->value));
  } else {
    report(site(rank), "waits for ever for a message");
  }
}

void Walk::check_barrier(Rank rank) {
  const Site at = site(rank);
  if (schedule_of(at).problem.operation != Operation::kBarrier) return;
  for (Rank other = 0; other < static_cast<Rank>(runners_.size()); ++other) {
    const auto& of_other = buffers(at.operation, other);
    if (of_other && runner(rank).clock.knows(of_other->begun)) continue;
    report(at, fmt::format("leaves the barrier, which rank {} need not have entered", other));
  }
}

void Walk::check_output(Rank rank) {
  const Site at = site(rank);
  const Problem& problem = schedule_of(at).problem;
  const Buffers& own = *buffers(at.operation, rank);
  for (const Promise& promise : promises(problem, rank)) {
    const Range range{own.output_begin + promise.range.begin, promise.range.count};
    Elements index = promise.index;
    Elements position = promise.range.begin;
    for (const Run& run : own.memories.back().peek(range)) {
      const bool is_right =
          promise.source == Promise::kAllRanks
              ? run.first.index == index && expressions_.is_whole_reduction(
                                                run.first.expression, at.operation, problem.ranks)
              : run.first == expressions_.input(at.operation, promise.source, index);
      if (!is_right) {
        report(at,
               fmt::format("ends with {} at output[{}], which should come from index {} of {}",
                           expressions_.describe(run.first),
                           position.value,
                           index.value,
                           promise.source == Promise::kAllRanks
                               ? "all ranks' inputs"
                               : fmt::format("rank {}'s input", promise.source)));
      }
      index += run.count;
      position += run.count;
    }
  }
}

void Walk::check_same_bits(int operation) {
  const Problem& problem = schedules_[static_cast<std::size_t>(operation)].problem;
  if (problem.operation != Operation::kAllReduce) return;
  const auto result = [&](Rank rank) {
    const Memory& output = buffers(operation, rank)->memories.back();
    return output.peek(output.whole());
  };
  const Content first = result(0);
  for (Rank rank = 1; rank < problem.ranks; ++rank) {
    const Content other = result(rank);
    if (other == first) continue;
    const auto at = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
    report({rank,
            operation,
            static_cast<int>(schedules_[static_cast<std::size_t>(operation)]
                                 .parts[static_cast<std::size_t>(rank)]
                                 .steps.size())},
           fmt::format("ends with {}, and rank 0 with {}: not the same bits",
                       expressions_.describe(at.second->first),
                       expressions_.describe(at.first->first)));
  }
}

void Walk::check_stages() {
  const Problem& problem = schedules_.back().problem;
  for (Rank owner = 0; owner < problem.ranks; ++owner) {
    Clock after = runner(owner).clock;
    const Ranks host = host_ranks(problem, owner);
    for (int i = 0; i < host.count; ++i) {
      if (host[i] != owner) after.learn(announcement(host[i], bases_.back())->clock);
    }
    const Memory& stage = stages_[static_cast<std::size_t>(owner)];
    if (const auto other = stage.unordered_with_write(stage.whole(), after)) {
      report(other->site,
             fmt::format("touches the stage of rank {} and no signal after it says so: the next "
                         "operation may overwrite it",
                         owner));
    }
    if (const auto lost = stage.unread_store(stage.whole())) {
      report(lost->site, fmt::format("stores to stage of rank {} what nobody reads", owner));
    }
  }
}

void Walk::check_leftovers() {
  for (const auto& [ends, link] : links_) {
    for (const Message& message : link.messages) {
      report(message.site, fmt::format("sends to rank {} what is not received", ends.second));
    }
  }
  for (const Runner& runner : runners_) {
    for (const Announcement& said : runner.announcements) {
      const bool is_last = said.value == base(said.site.operation + 1);
      if (!said.awaited && !is_last) report(said.site, "signals what nobody waits for");
    }
  }
}

const Schedule& Walk::schedule_of(const Site& at) const {
  return schedules_[static_cast<std::size_t>(at.operation)];
}

Site Walk::site(Rank rank) const {
  const Runner& self = runners_[static_cast<std::size_t>(rank)];
  return {rank, self.operation, std::max(self.step, 0)};
}

Walk::Link& Walk::link(Rank from, Rank to) {
  const auto actor = static_cast<Actor>(runners_.size() + links_.size());
  return links_
      .try_emplace({from, to},
                   Link{.last_sent = {actor, 0}, .messages = {}, .sent = {}, .received = {}})
      .first->second;
}

std::optional<Walk::Buffers>& Walk::buffers(int operation, Rank rank) {
  return buffers_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(rank)];
}

void Walk::report(const Site& at, std::string what) {
  violations_.push_back({at.rank, at.operation, at.step, std::move(what)});
}

void Walk::report_race(const Place& at, const Access& by, const Access& other) {
  report(by.site,
         fmt::format("{} {} {} of rank {}, in no order with {}",
                     by.kind == AccessKind::kRead    ? "reads"
                     : by.kind == AccessKind::kWrite ? "writes"
                                                     : "hands to the user",
                     name_of(at.space),
                     range_words(at.range),
                     at.owner,
                     access_words(other)));
}

}  // namespace peal::verify
