#include "peal/observe/named_waits.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "peal/observe/evidence.h"
#include "peal/observe/flight_layout.h"
#include "peal/observe/make_diagnosis.h"
#include "peal/observe/operation_text.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// The text that peal/named records while the program is in join().
constexpr std::string_view kJoin = "join()";

const FlightGroup* group_of_name(const Flight& flight, const FlightName& name) {
  return name.group < flight.groups.size() ? &flight.groups[name.group] : nullptr;
}

/// An operation that a rank waits for.
struct NamedWait {
  Rank rank = 0;
  const FlightName* name = nullptr;
  const FlightGroup* group = nullptr;
};

std::optional<NamedWait> longest_wait(const JobView& job) {
  std::optional<NamedWait> longest;
  for (const RankView& view : job.ranks()) {
    if (view.flight == nullptr) continue;
    for (const FlightName& name : view.flight->names) {
      const FlightGroup* const group = group_of_name(*view.flight, name);
      if (name.end || name.started || name.text == kJoin || group == nullptr) continue;
      if (longest && longest->name->submitted <= name.submitted) continue;
      longest = NamedWait{view.rank, &name, group};
    }
  }
  return longest;
}

bool has_in_flight(const JobView& job, Rank rank, const FlightGroup& group, std::string_view text) {
  const Flight* const flight = job.at(rank).flight;
  return flight != nullptr && std::ranges::any_of(flight->names, [&](const FlightName& name) {
           const FlightGroup* const theirs = group_of_name(*flight, name);
           return !name.end && name.text == text && theirs != nullptr && theirs->name == group.name;
         });
}

/// Whether the rank may have submitted operations that its record has no place for.
bool may_have_others(const JobView& job, Rank rank) {
  const Flight* const flight = job.at(rank).flight;
  return flight != nullptr && flight->names.size() >= kNames &&
         std::ranges::all_of(flight->names, [](const FlightName& name) { return !name.end; });
}

/// Where the rank is instead: ": it has allreduce "y" in flight, and its process still runs".
std::string place_text(const JobView& job, Rank rank) {
  const RankView view = job.at(rank);
  if (view.flight == nullptr) return ": it left no record, and " + process_text(view);
  const std::string names = names_in_flight(*view.flight);
  return fmt::format(": it has {} in flight, and {}",
                     names.empty() ? "no operation by name" : names,
                     process_text(view));
}

}  // namespace

std::string names_in_flight(const Flight& flight) {
  std::vector<std::string> texts;
  for (const FlightName& name : flight.names) {
    if (name.is_unfinished()) texts.push_back(name.text);
  }
  return names_text(texts);
}

std::optional<Diagnosis> named_wait(const JobView& job) {
  const std::optional<NamedWait> longest = longest_wait(job);
  if (!longest) return std::nullopt;
  std::vector<Rank> waiting, missing;
  for (const Rank rank : longest->group->ranks) {
    if (has_in_flight(job, rank, *longest->group, longest->name->text)) {
      waiting.push_back(rank);
    } else if (!has_in_flight(job, rank, *longest->group, kJoin) && !may_have_others(job, rank)) {
      missing.push_back(rank);
    }
  }
  if (missing.empty() || waiting.empty()) return std::nullopt;
  std::ranges::sort(waiting);
  std::ranges::sort(missing);
  std::string text = fmt::format("{} {} not submitted {} of the group {}, for which {} {} since {}",
                                 ranks_text(missing),
                                 missing.size() == 1 ? "has" : "have",
                                 longest->name->text,
                                 longest->group->name,
                                 ranks_text(waiting),
                                 waiting.size() == 1 ? "waits" : "wait",
                                 time_text(longest->name->submitted));
  if (missing.size() == 1) text += place_text(job, missing.front());
  return make_diagnosis(job, Diagnosis::Cause::kMissing, missing, text);
}

}  // namespace peal::observe
