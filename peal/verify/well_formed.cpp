#include "peal/verify/well_formed.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "peal/schedule/problem.h"

namespace peal::verify {
namespace {

using schedule::Finish;
using schedule::Holds;
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

// Each check returns an error text, or nothing.
using Words = std::string;

/// Sums of sizes and counters below these limits do not overflow.
constexpr Elements kMostElements(std::int64_t{1} << 40);
constexpr std::int64_t kMostSignals = std::int64_t{1} << 40;
constexpr int kMostRanks = 1 << 20;

Words check_counts(const Problem& problem) {
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  const bool by_pair = problem.operation == Operation::kAllToAll;
  const bool by_rank =
      problem.operation == Operation::kScatter || problem.operation == Operation::kGather ||
      problem.operation == Operation::kAllGather || problem.operation == Operation::kReduceScatter;
  if (!problem.counts.empty()) {
    if (!by_pair && !by_rank) return "the operation has one count, not one for each rank";
    if (problem.counts.size() != (by_pair ? ranks * ranks : ranks)) {
      return fmt::format("{} counts for {} ranks", problem.counts.size(), problem.ranks);
    }
  }
  std::vector<Elements> all = problem.counts;
  all.push_back(problem.count);
  Elements left = kMostElements;
  for (const Elements count : all) {
    if (count < Elements(0) || count > left) return "a count is negative, or the sum is too large";
    left -= count;
  }
  return {};
}

Words check_problem(const Schedule& schedule) {
  const Problem& problem = schedule.problem;
  if (problem.ranks < 1 || problem.ranks > kMostRanks || problem.ranks_per_host < 1) {
    return fmt::format("{} ranks, {} on a host", problem.ranks, problem.ranks_per_host);
  }
  if (schedule.parts.size() != static_cast<std::size_t>(problem.ranks)) {
    return fmt::format("{} parts for {} ranks", schedule.parts.size(), problem.ranks);
  }
  if (problem.root < 0 || problem.root >= problem.ranks) {
    return fmt::format("the root is rank {} of {}", problem.root, problem.ranks);
  }
  if (std::find(kAllCollectives.begin(), kAllCollectives.end(), problem.operation) ==
      kAllCollectives.end()) {
    return fmt::format("{} has no schedule", name_of(problem.operation));
  }
  if (!problem.registered.empty() && std::ssize(problem.registered) != problem.ranks) {
    return fmt::format(
        "{} entries of registered for {} ranks", problem.registered.size(), problem.ranks);
  }
  if (!problem.in_place_of.empty() && std::ssize(problem.in_place_of) != problem.ranks) {
    return fmt::format(
        "{} entries of in_place for {} ranks", problem.in_place_of.size(), problem.ranks);
  }
  const auto& some = problem.in_place_of;
  if (problem.operation == Operation::kAllToAll &&
      (problem.in_place || std::find(some.begin(), some.end(), true) != some.end())) {
    return "all_to_all cannot be in place";
  }
  return check_counts(problem);
}

/// The checks of one rank's steps.
class PartForm {
 public:
  PartForm(const Problem& problem, const Part& part, Rank self)
      : problem_(problem), part_(part), self_(self) {}

  Words check(const Move& move) const;
  Words check(const Signal& signal) const;
  Words check(const Wait& wait) const;

 private:
  Words check(const Ranks& ranks) const;
  Words check(const Slice& slice, Elements count) const;
  Words check_memory(const Slice& slice, Elements count, Rank owner) const;
  Words check_holds(const Move& move) const;
  Words check_source(const Move& move) const;
  Words check_target(const Move& move) const;
  Words check_overlap(const Move& move) const;

  const Problem& problem_;
  const Part& part_;
  Rank self_;
};

Words PartForm::check(const Ranks& ranks) const {
  const std::int64_t last =
      ranks.first + std::int64_t{ranks.stride} * (std::int64_t{ranks.count} - 1);
  if (ranks.count < 1 || ranks.stride < 1 || (ranks.count == 1 && ranks.stride != 1)) {
    return fmt::format(
        "{} ranks with stride {} are not in canonical form", ranks.count, ranks.stride);
  }
  if (ranks.first < 0 || last >= problem_.ranks) {
    return fmt::format("ranks {} to {} are not all in the group", ranks.first, last);
  }
  return {};
}

Words PartForm::check(const Slice& slice, Elements count) const {
  if (Words words = check(slice.ranks); !words.empty()) return words;
  if (slice.space == Space::kWire) {
    if (slice.ranks.count != 1) return "a slice of the wire has one peer";
    if (slice.ranks.first == self_) return "a rank has no link to itself";
    return {};
  }
  for (int i = 0; i < slice.ranks.count; ++i) {
    if (Words words = check_memory(slice, count, slice.ranks[i]); !words.empty()) return words;
  }
  return {};
}

Words PartForm::check_memory(const Slice& slice, Elements count, Rank owner) const {
  const std::string_view name = name_of(slice.space);
  if (host_of(problem_, owner) != host_of(problem_, self_)) {
    return fmt::format("{} of rank {} is on another host", name, owner);
  }
  if (owner != self_ && slice.space != Space::kStage) {
    if (!works_on_registered(problem_, self_)) {
      return fmt::format(
          "{} of rank {} is touched, but not all memory that the ranks of its host share is "
          "registered",
          name,
          owner);
    }
    if (!is_shared(problem_, owner, slice.space)) {
      return fmt::format("{} of rank {} may not be touched by other ranks in a {}",
                         name,
                         owner,
                         name_of(problem_.operation));
    }
  }
  if (owner != self_ && slice.space == Space::kStage && part_.span == 0) {
    return fmt::format("other ranks may not touch the stage of rank {}, because no rank signals",
                       owner);
  }
  const Elements size = slice.space == Space::kInput    ? input_size(problem_, owner)
                        : slice.space == Space::kOutput ? output_size(problem_, owner)
                                                        : part_.stage;
  if (slice.offset < Elements(0) || count > size || slice.offset > size - count) {
    return fmt::format("{} elements at {} are not inside the {} elements of rank {}'s {}",
                       count.value,
                       slice.offset.value,
                       size.value,
                       owner,
                       name);
  }
  return {};
}

Words PartForm::check_holds(const Move& move) const {
  const auto is_partial = [](const Slice& slice) { return slice.holds == Holds::kPartial; };
  if (std::any_of(move.to.begin(), move.to.end(), is_partial)) {
    return "a target is marked as partial, which only sources are";
  }
  const bool can_be = reduces(problem_.operation) && !is_copy(move);
  if (!can_be && std::any_of(move.from.begin(), move.from.end(), is_partial)) {
    return "a source is marked as partial, and the move does not reduce";
  }
  return {};
}

Words PartForm::check_source(const Move& move) const {
  if (move.from.empty()) return "a move has no source";
  int received = 0;
  for (const Slice& from : move.from) {
    if (Words words = check(from, move.count); !words.empty()) return words;
    if (from.space == Space::kWire) ++received;
  }
  if (received > 1) return "a move receives from one peer at most";
  return {};
}

Words PartForm::check_target(const Move& move) const {
  if (move.to.empty()) return "a move has no target";
  for (const Slice& to : move.to) {
    if (Words words = check(to, move.count); !words.empty()) return words;
    if (to.space == Space::kInput) return "a move writes to an input";
    if (to.space != Space::kWire) continue;
    const Slice& from = move.from[0];
    if (move.to.size() != 1 || !is_copy(move) || from.space == Space::kWire ||
        from.ranks != Ranks{.first = self_}) {
      return "a send copies one slice of the rank's own memory, and nothing else";
    }
  }
  const auto key = [](const Slice& slice) {
    return std::tuple(slice.space, slice.ranks.first, slice.offset);
  };
  for (std::size_t i = 1; i < move.to.size(); ++i) {
    if (!(key(move.to[i - 1]) < key(move.to[i]))) return "targets are not in ascending order";
  }
  return {};
}

/// A place in one rank's memory. If input and output share memory, the position counts in that
/// memory.
struct Footprint {
  Rank owner;
  bool in_stage;
  bool in_input;  // and not in memory that is also output
  Elements position;
};

Footprint footprint(const Problem& problem, const Slice& slice, Rank owner) {
  const auto shared = placement(problem, owner);
  Elements position = slice.offset;
  if (shared && slice.space == Space::kInput) position += shared->input;
  if (shared && slice.space == Space::kOutput) position += shared->output;
  return {owner, slice.space == Space::kStage, slice.space == Space::kInput && !shared, position};
}

bool same_memory(const Footprint& a, const Footprint& b) {
  return a.owner == b.owner && a.in_stage == b.in_stage && a.in_input == b.in_input;
}

std::vector<Footprint> footprints(const Problem& problem, const Slice* begin, const Slice* end) {
  std::vector<Footprint> all;
  for (const Slice* slice = begin; slice != end; ++slice) {
    if (slice->space == Space::kWire) continue;
    for (int i = 0; i < slice->ranks.count; ++i) {
      all.push_back(footprint(problem, *slice, slice->ranks[i]));
    }
  }
  return all;
}

Words PartForm::check_overlap(const Move& move) const {
  const auto overlap = [&](const Footprint& a, const Footprint& b) {
    return same_memory(a, b) && a.position < b.position + move.count &&
           b.position < a.position + move.count;
  };
  const std::vector<Footprint> sources = footprints(problem_, move.from.begin(), move.from.end());
  const std::vector<Footprint> targets = footprints(problem_, move.to.begin(), move.to.end());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (std::size_t j = i + 1; j < targets.size(); ++j) {
      if (overlap(targets[i], targets[j])) return "two targets overlap";
    }
    for (const Footprint& source : sources) {
      if (!overlap(targets[i], source)) continue;
      if (targets[i].position != source.position) return "a source and a target overlap";
      if (is_copy(move)) return "a copy onto itself";
    }
  }
  return {};
}

Words PartForm::check(const Move& move) const {
  if (move.count < Elements(1)) return "a move has no elements";
  if (move.finish == Finish::kYes && !reduces(problem_.operation)) {
    return "a move finishes values, but the operation does not reduce";
  }
  if (Words words = check_holds(move); !words.empty()) return words;
  if (Words words = check_source(move); !words.empty()) return words;
  if (Words words = check_target(move); !words.empty()) return words;
  return check_overlap(move);
}

Words PartForm::check(const Signal& signal) const {
  if (signal.value >= 1 && signal.value <= part_.span) return {};
  return fmt::format("signal {} is not between 1 and the span {}", signal.value, part_.span);
}

Words PartForm::check(const Wait& wait) const {
  if (Words words = check(wait.ranks); !words.empty()) return words;
  if (wait.ranks.first == self_ || wait.ranks[wait.ranks.count - 1] == self_) {
    return "a rank waits for itself";
  }
  for (int i = 0; i < wait.ranks.count; ++i) {
    if (host_of(problem_, wait.ranks[i]) != host_of(problem_, self_)) {
      return fmt::format("the counter of rank {} is on another host", wait.ranks[i]);
    }
  }
  if (wait.value == 0 && part_.span == 0) return "a wait for 0, but no rank signals";
  if (wait.value >= 0 && wait.value <= part_.span) return {};
  return fmt::format("a wait for {} is not between 0 and the span {}", wait.value, part_.span);
}

Words check_signals(const Part& part) {
  std::int64_t last = 0;
  for (const Step& step : part.steps) {
    const auto* signal = std::get_if<Signal>(&step);
    if (signal == nullptr) continue;
    if (signal->value <= last) {
      return fmt::format(
          "signal {} comes after signal {}, but signals must ascend", signal->value, last);
    }
    last = signal->value;
  }
  if (last != part.span) {
    return fmt::format("the last signal is {}, but the span is {}", last, part.span);
  }
  return {};
}

Words check_part(const Schedule& schedule, Rank self) {
  const Part& part = schedule.parts[static_cast<std::size_t>(self)];
  const Rank leader = host_ranks(schedule.problem, self).first;
  const Part& first = schedule.parts[static_cast<std::size_t>(leader)];
  if (part.stage != first.stage || part.span != first.span) {
    return fmt::format("stage {} and span {} are not the {} and {} of rank {} on the same host",
                       part.stage.value,
                       part.span,
                       first.stage.value,
                       first.span,
                       leader);
  }
  const Elements most_stage = std::min(schedule.problem.stage_limit, kMostElements);
  if (part.stage < Elements(0) || part.stage > most_stage) {
    return fmt::format("a stage of {} elements is not between 0 and the limit {}",
                       part.stage.value,
                       most_stage.value);
  }
  if (part.span > kMostSignals) return fmt::format("a span of {} is too large", part.span);
  return check_signals(part);
}

}  // namespace

std::vector<Violation> check_well_formed(const Schedule& schedule, int operation) {
  if (Words words = check_problem(schedule); !words.empty()) return {{0, operation, 0, words}};
  std::vector<Violation> found;
  for (Rank self = 0; self < schedule.problem.ranks; ++self) {
    const Part& part = schedule.parts[static_cast<std::size_t>(self)];
    const PartForm form(schedule.problem, part, self);
    const int steps = static_cast<int>(part.steps.size());
    for (int i = 0; i < steps; ++i) {
      Words words = std::visit([&](const auto& step) { return form.check(step); },
                               part.steps[static_cast<std::size_t>(i)]);
      if (!words.empty()) found.push_back({self, operation, i, std::move(words)});
    }
    if (Words words = check_part(schedule, self); !words.empty()) {
      found.push_back({self, operation, steps, std::move(words)});
    }
  }
  return found;
}

}  // namespace peal::verify
