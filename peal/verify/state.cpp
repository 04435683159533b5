#include "peal/verify/state.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/schedule/problem.h"

namespace peal::verify {
namespace {

using schedule::Part;
using schedule::Problem;
using schedule::Ranks;
using schedule::Schedule;
using schedule::Scratch;
using schedule::ScratchSize;
using schedule::Space;

/// The time at which the earlier operations end for a rank, and at which its first one begins.
constexpr std::int64_t kBefore = 1;
constexpr std::int64_t kBegin = 2;

/// Marks an operation before the sequence.
constexpr int kEarlier = -1;

/// Scratch after earlier operations: other ranks have used it before their last signal, and its
/// owner until it begins the sequence.
Memory used_scratch(const Problem& problem, Rank owner, Elements size) {
  std::vector<Access> users;
  const Ranks host = host_ranks(problem, owner);
  for (int i = 0; i < host.count; ++i) {
    const Event until{host[i], host[i] == owner ? kBegin : kBefore};
    users.push_back({AccessKind::kUse, until, {host[i], kEarlier, 0}});
  }
  return Memory(size, std::move(users));
}

/// A rank that has ended the earlier operations and has signalled their end.
Runner standing(Rank rank) {
  Runner runner;
  runner.time = kBefore;
  runner.clock.learn({rank, kBefore});
  runner.announcements.push_back(
      {.counter = 0, .site = {rank, kEarlier, 0}, .event = {rank, kBefore}, .clock = runner.clock});
  return runner;
}

/// The staging place of the ranks of a host, for parts with this stage and span. Elements count as
/// bytes.
Staging staging_of(const Part& part, int ranks, const ScratchSize& size, Scratch& scratch) {
  Staging staging;
  if (part.span == 0) {
    for (int i = 0; i < ranks; ++i) staging.own.emplace_back(part.stage, std::vector<Access>());
    return staging;
  }
  const Scratch::Reservation place = scratch.reserve(Bytes(part.stage.value));
  const auto cell = static_cast<std::int64_t>(scratch.turn()) % size.cells;
  const Bytes begin = place.is_cell ? size.ring + size.cell * cell : place.offset;
  staging.begin = Elements(begin.value);
  staging.free_at = place.free.counter;
  scratch.end_turn(part.span);
  return staging;
}

Host host_with(const Ranks& ranks, std::span<const Schedule> schedules, const ScratchSize& size) {
  Host host{.ranks = ranks, .bases = {}, .stagings = {}};
  Scratch scratch(size);
  for (const Schedule& schedule : schedules) {
    const Part& part = schedule.parts[static_cast<std::size_t>(ranks.first)];
    host.bases.push_back(scratch.base());
    host.stagings.push_back(staging_of(part, ranks.count, size, scratch));
  }
  return host;
}

std::string words(const RankSlice& place) {
  return fmt::format(
      "{}[{}]@{} x{}", name_of(place.space), place.owner, place.offset.value, place.count.value);
}

std::string words(const Access& access) {
  const Site& site = access.site;
  if (site.operation == kEarlier) return fmt::format("an earlier operation of rank {}", site.rank);
  if (access.kind == AccessKind::kUse) return fmt::format("the user of rank {}", site.rank);
  return fmt::format("the {} of rank {} at step {} of operation {}",
                     access.kind == AccessKind::kRead ? "read" : "write",
                     site.rank,
                     site.step,
                     site.operation);
}

/// A range of a memory.
struct Spot {
  Memory* memory;
  Range range;
};

/// Finds the place in memory. Reports an error and returns nothing if its rank may not have begun.
std::optional<Spot> find(State& state, const RankSlice& place, const Site& site) {
  if (place.space == Space::kStage) {
    const auto [memory, begin] = state.stage_of(place.owner, site.operation);
    return Spot{memory, {begin + place.offset, place.count}};
  }
  std::optional<Buffers>& of_owner = state.buffers_of(place.owner, site.operation);
  if (!of_owner) {
    state.report(
        site,
        fmt::format("touches {}, but its rank may not have begun the operation", words(place)));
    return std::nullopt;
  }
  const bool is_input = place.space == Space::kInput;
  const Elements begin = is_input ? of_owner->input_begin : of_owner->output_begin;
  return Spot{is_input ? &of_owner->input() : &of_owner->output(),
              {begin + place.offset, place.count}};
}

}  // namespace

State::State(std::span<const Schedule> all, const ScratchSize& size)
    : schedules(all), buffers(all.size()) {
  const Problem& any = schedules.front().problem;
  const Elements cells(size.cell.value * size.cells);
  for (Rank rank = 0; rank < any.ranks; ++rank) {
    runners.push_back(standing(rank));
    scratch.push_back(used_scratch(any, rank, Elements(size.ring.value) + cells));
  }
  for (Rank first = 0; first < any.ranks; first += any.ranks_per_host) {
    hosts.push_back(host_with(host_ranks(any, first), schedules, size));
  }
  for (auto& of_operation : buffers) of_operation.resize(static_cast<std::size_t>(any.ranks));
}

const Problem& State::problem(int operation) const {
  return schedules[static_cast<std::size_t>(operation)].problem;
}

const Part& State::part(int operation, Rank rank) const {
  return schedules[static_cast<std::size_t>(operation)].parts[static_cast<std::size_t>(rank)];
}

Site State::site(Rank rank) const {
  return {rank, runner(rank).operation, std::max(runner(rank).step, 0)};
}

Link& State::link(Rank from, Rank to) {
  const auto sender = static_cast<Actor>(runners.size() + links.size());
  Link fresh{.last_read = {sender, 0}, .messages = {}, .sent = {}};
  return links.try_emplace({from, to}, std::move(fresh)).first->second;
}

std::optional<Buffers>& State::buffers_of(Rank rank, int operation) {
  return buffers[static_cast<std::size_t>(operation)][static_cast<std::size_t>(rank)];
}

const Host& State::host_of(Rank rank) const {
  return hosts[static_cast<std::size_t>(schedule::host_of(schedules.front().problem, rank))];
}

std::pair<Memory*, Elements> State::stage_of(Rank rank, int operation) {
  Host& host = hosts[static_cast<std::size_t>(schedule::host_of(problem(operation), rank))];
  Staging& staging = host.stagings[static_cast<std::size_t>(operation)];
  if (staging.begin) return {&scratch[static_cast<std::size_t>(rank)], *staging.begin};
  return {&staging.own[static_cast<std::size_t>(rank - host.ranks.first)], Elements(0)};
}

std::int64_t State::counter(Rank rank, int operation, std::int64_t value) const {
  const Host& host = host_of(rank);
  const auto k = static_cast<std::size_t>(operation);
  return value == 0 ? host.stagings[k].free_at : host.bases[k] + value;
}

const Announcement* State::announcement(Rank rank, std::int64_t counter) const {
  const std::vector<Announcement>& all = runner(rank).announcements;
  const auto below = [](const Announcement& said, std::int64_t least) {
    return said.counter < least;
  };
  const auto at = std::lower_bound(all.begin(), all.end(), counter, below);
  return at == all.end() ? nullptr : &*at;
}

Content State::load(const RankSlice& place, const Access& by) {
  const auto spot = find(*this, place, by.site);
  if (!spot) return {{Value{}, place.count}};
  const VectorClock& known = runner(by.site.rank).clock;
  if (const auto other = spot->memory->unordered_with_read(spot->range, known)) {
    report_race(place, by, *other);
  }
  Content content = spot->memory->read(spot->range, by);
  const bool has_gaps = std::any_of(content.begin(), content.end(), [](const Run& run) {
    return run.first.expression == kNothing;
  });
  // The messages of a barrier have no content.
  if (has_gaps && problem(by.site.operation).operation != Operation::kBarrier) {
    report(by.site, fmt::format("reads {}, which no rank has written", words(place)));
  }
  return content;
}

void State::store(const RankSlice& place, const Content& content, const Access& by) {
  const auto spot = find(*this, place, by.site);
  if (!spot) return;
  const VectorClock& known = runner(by.site.rank).clock;
  if (const auto other = spot->memory->unordered_with_write(spot->range, known)) {
    report_race(place, by, *other);
  }
  if (const auto lost = spot->memory->unread_store(spot->range)) {
    report(lost->site,
           fmt::format(
               "stores data to {}[{}] that no rank reads before step {} of rank {} overwrites it",
               name_of(place.space),
               place.owner,
               by.site.step,
               by.site.rank));
  }
  const bool is_wanted = problem(by.site.operation).operation == Operation::kBarrier;
  spot->memory->write(spot->range.begin,
                      content,
                      by,
                      is_wanted ? Memory::Purpose::kWanted : Memory::Purpose::kToBeRead);
}

void State::report(const Site& site, std::string what) {
  violations.push_back({site.rank, site.operation, site.step, std::move(what)});
}

void State::report_race(const RankSlice& place, const Access& by, const Access& other) {
  const std::string_view does = by.kind == AccessKind::kRead    ? "reads"
                                : by.kind == AccessKind::kWrite ? "writes"
                                                                : "hands to the user";
  report(by.site, fmt::format("{} {}, unordered with {}", does, words(place), words(other)));
}

}  // namespace peal::verify
