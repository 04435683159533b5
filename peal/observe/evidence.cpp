#include "peal/observe/evidence.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/observe/named_waits.h"
#include "peal/observe/operation_text.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// Nobody reads more lines.
constexpr std::size_t kRanksShown = 32;

std::string under_way(const JobView& job, const RankView& view) {
  const FlightOperation* const operation = job.unfinished(view.rank);
  if (operation == nullptr) return "in no operation";
  std::string text = fmt::format(
      "in {} since {}", operation_text(*view.flight, *operation), time_text(operation->start));
  if (is_message(operation->kind.operation)) return text;
  if (const std::vector<Rank> missing = job.waits_on(view.rank); !missing.empty()) {
    text += fmt::format(", waiting for {}", ranks_text(missing));
  }
  if (operation->waited.count() > 0) {
    text += fmt::format(" ({} in all)", length_text(operation->waited));
  }
  return text;
}

std::string finished(const JobView& job, const RankView& view) {
  const FlightOperation* const last = job.last_finished(view.rank);
  if (last == nullptr) return "has finished no operation";
  return fmt::format(
      "last finished {} at {}", operation_text(*view.flight, *last), time_text(*last->end));
}

std::string line_of(const JobView& job, const RankView& view) {
  if (view.flight == nullptr) {
    return fmt::format("rank {}: left no record; {}", view.rank, process_text(view));
  }
  std::vector<std::string> parts = {under_way(job, view), finished(job, view)};
  const std::string names = names_in_flight(*view.flight);
  if (!names.empty() && !parts.front().starts_with("in " + names)) {
    parts.push_back("in flight by name: " + names);
  }
  if (const auto& first_error = view.flight->first_error) {
    parts.push_back(fmt::format(
        "failed at {} with {}", time_text(first_error->at), name_of(first_error->kind)));
  }
  parts.push_back(process_text(view));
  if (view.flight->torn > 0) {
    parts.push_back(fmt::format("{} of its entries were half written", view.flight->torn));
  }
  return fmt::format("rank {} (process {} on {}): {}",
                     view.rank,
                     view.flight->pid,
                     view.flight->host,
                     fmt::join(parts, "; "));
}

}  // namespace

std::string process_text(const RankView& view) {
  using State = RankEnd::State;
  if (view.end != nullptr && has_ended(view.end->state)) {
    return fmt::format("its process {} at {}", view.end->text, time_text(view.end->at));
  }
  if (view.flight != nullptr && view.flight->departure) {
    return fmt::format(
        "it left {} at {}",
        view.flight->departure->how == Departure::kNormal ? "without an error" : "by an exception",
        time_text(view.flight->departure->at));
  }
  if (view.end != nullptr) {
    return view.end->state == State::kRuns ? "its process still runs"
                                           : "its process is stopped (suspended by a signal)";
  }
  if (view.flight != nullptr) {
    return fmt::format("how its process ended is unknown; last seen at {}",
                       time_text(view.flight->last_seen));
  }
  return "nothing is known of its process";
}

std::vector<std::string> evidence(const JobView& job, const std::vector<Rank>& involved) {
  std::vector<RankView> order;
  for (const Rank rank : involved) order.push_back(job.at(rank));
  for (const RankView& view : job.ranks()) {
    if (std::ranges::find(involved, view.rank) == involved.end()) order.push_back(view);
  }
  std::vector<std::string> lines;
  for (const RankView& view : order) {
    if (lines.size() == kRanksShown) {
      lines.push_back(fmt::format("and {} more ranks", order.size() - kRanksShown));
      break;
    }
    lines.push_back(line_of(job, view));
  }
  std::map<std::string, const Flight*> first;  // by host
  for (const RankView& view : job.ranks()) {
    if (view.flight == nullptr || !view.flight->first_error) continue;
    const Flight*& known = first[view.flight->host];
    if (known == nullptr || view.flight->first_error->at < known->first_error->at)
      known = view.flight;
  }
  for (const auto& [host, flight] : first) {
    lines.push_back(fmt::format("the first error on {}: rank {} at {}: {}: {}",
                                host,
                                flight->rank,
                                time_text(flight->first_error->at),
                                name_of(flight->first_error->kind),
                                flight->first_error->text));
  }
  return lines;
}

}  // namespace peal::observe
