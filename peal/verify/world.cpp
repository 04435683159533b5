#include "peal/verify/world.h"

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

/// When the operations before the sequence end for a rank, and when its first one begins.
constexpr std::int64_t kBefore = 1;
constexpr std::int64_t kBegin = 2;

/// No operation of the sequence.
constexpr int kEarlier = -1;

/// Scratch as earlier operations leave it: others have used it before their last signal, its
/// owner until it begins.
Memory used_scratch(const Problem& problem, Rank owner, Elements size) {
  std::vector<Access> users;
  const Ranks host = host_ranks(problem, owner);
  for (int i = 0; i < host.count; ++i) {
    const Event until{host[i], host[i] == owner ? kBegin : kBefore};
    users.push_back({AccessKind::kUse, until, {host[i], kEarlier, 0}});
  }
  return Memory(size, std::move(users));
}

/// A rank that has ended the earlier operations, and has said so.
Runner standing(Rank rank) {
  Runner runner;
  runner.time = kBefore;
  runner.clock.learn({rank, kBefore});
  runner.announcements.push_back(
      {.counter = 0, .site = {rank, kEarlier, 0}, .event = {rank, kBefore}, .clock = runner.clock});
  return runner;
}

/// Elements stand for bytes.
Staging staging_of(const Schedule& schedule, const ScratchSize& size, Scratch& scratch) {
  const Part& part = schedule.parts.front();
  Staging staging;
  if (part.span == 0) {
    for (int rank = 0; rank < schedule.problem.ranks; ++rank) {
      staging.own.emplace_back(part.stage, std::vector<Access>());
    }
    return staging;
  }
  const Scratch::Place place = scratch.place(Bytes(part.stage.value));
  const auto cell = static_cast<std::int64_t>(scratch.turn()) % size.cells;
  const Bytes begin = place.is_cell ? size.ring + size.cell * cell : place.offset;
  staging.begin = Elements(begin.value);
  staging.free_at = place.free.counter;
  scratch.end_turn(part.span);
  return staging;
}

std::string words(const Place& place) {
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

/// Where the place is; nothing, and a report, if its rank need not be there yet.
std::optional<Spot> find(World& world, const Place& place, const Site& site) {
  if (place.space == Space::kStage) {
    const auto owner = static_cast<std::size_t>(place.owner);
    Staging& staging = world.staging(site.operation);
    if (!staging.begin) return Spot{&staging.own[owner], {place.offset, place.count}};
    return Spot{&world.scratch[owner], {*staging.begin + place.offset, place.count}};
  }
  std::optional<Buffers>& of_owner = world.buffers_of(place.owner, site.operation);
  if (!of_owner) {
    world.report(
        site,
        fmt::format("touches {}, whose rank need not have begun the operation", words(place)));
    return std::nullopt;
  }
  const bool is_input = place.space == Space::kInput;
  const Elements begin = is_input ? of_owner->input_begin : of_owner->output_begin;
  return Spot{is_input ? &of_owner->input() : &of_owner->output(),
              {begin + place.offset, place.count}};
}

}  // namespace

World::World(std::span<const Schedule> all, const ScratchSize& size)
    : schedules(all), bases{0}, buffers(all.size()) {
  const Problem& any = schedules.front().problem;
  const Elements cells(size.cell.value * size.cells);
  for (Rank rank = 0; rank < any.ranks; ++rank) {
    runners.push_back(standing(rank));
    scratch.push_back(used_scratch(any, rank, Elements(size.ring.value) + cells));
  }
  Scratch places(size);
  for (const Schedule& schedule : schedules) {
    stagings.push_back(staging_of(schedule, size, places));
    bases.push_back(places.base());
  }
  for (auto& of_operation : buffers) of_operation.resize(static_cast<std::size_t>(any.ranks));
}

const Problem& World::problem(int operation) const {
  return schedules[static_cast<std::size_t>(operation)].problem;
}

const Part& World::part(int operation, Rank rank) const {
  return schedules[static_cast<std::size_t>(operation)].parts[static_cast<std::size_t>(rank)];
}

Site World::site(Rank rank) const {
  return {rank, runner(rank).operation, std::max(runner(rank).step, 0)};
}

Link& World::link(Rank from, Rank to) {
  const auto sender = static_cast<Actor>(runners.size() + links.size());
  Link fresh{.last_read = {sender, 0}, .messages = {}, .sent = {}};
  return links.try_emplace({from, to}, std::move(fresh)).first->second;
}

std::optional<Buffers>& World::buffers_of(Rank rank, int operation) {
  return buffers[static_cast<std::size_t>(operation)][static_cast<std::size_t>(rank)];
}

std::int64_t World::counter(int operation, std::int64_t value) const {
  const auto k = static_cast<std::size_t>(operation);
  return value == 0 ? stagings[k].free_at : bases[k] + value;
}

const Announcement* World::announcement(Rank rank, std::int64_t counter) const {
  const std::vector<Announcement>& all = runner(rank).announcements;
  const auto below = [](const Announcement& said, std::int64_t least) {
    return said.counter < least;
  };
  const auto at = std::lower_bound(all.begin(), all.end(), counter, below);
  return at == all.end() ? nullptr : &*at;
}

Content World::load(const Place& place, const Access& by) {
  const auto spot = find(*this, place, by.site);
  if (!spot) return {{Value{}, place.count}};
  const Clock& known = runner(by.site.rank).clock;
  if (const auto other = spot->memory->unordered_with_read(spot->range, known)) {
    report_race(place, by, *other);
  }
  Content content = spot->memory->read(spot->range, by);
  const bool has_gaps = std::any_of(content.begin(), content.end(), [](const Run& run) {
    return run.first.expression == kNothing;
  });
  // A barrier's messages have no meaning but that they come.
  if (has_gaps && problem(by.site.operation).operation != Operation::kBarrier) {
    report(by.site, fmt::format("reads {}, where nobody has written", words(place)));
  }
  return content;
}

void World::store(const Place& place, const Content& content, const Access& by) {
  const auto spot = find(*this, place, by.site);
  if (!spot) return;
  const Clock& known = runner(by.site.rank).clock;
  if (const auto other = spot->memory->unordered_with_write(spot->range, known)) {
    report_race(place, by, *other);
  }
  if (const auto lost = spot->memory->unread_store(spot->range)) {
    report(lost->site,
           fmt::format("stores to {}[{}] what nobody reads before step {} of rank {} overwrites it",
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

void World::report(const Site& site, std::string what) {
  violations.push_back({site.rank, site.operation, site.step, std::move(what)});
}

void World::report_race(const Place& place, const Access& by, const Access& other) {
  const std::string_view does = by.kind == AccessKind::kRead    ? "reads"
                                : by.kind == AccessKind::kWrite ? "writes"
                                                                : "hands to the user";
  report(by.site, fmt::format("{} {}, in no order with {}", does, words(place), words(other)));
}

}  // namespace peal::verify
