#include "peal/observe/job_view.h"

#include <algorithm>

#include "peal/observe/operation_text.h"

namespace peal::observe {
namespace {

bool is_background(const Flight& flight, const FlightOperation& operation) {
  const FlightGroup* const group = group_of(flight, operation);
  return group != nullptr && group->use == FlightGroup::Use::kBackground;
}

}  // namespace

JobView::JobView(std::span<const Flight> flights, std::span<const RankEnd> ends) {
  std::map<Rank, RankView> ranks;
  for (const Flight& flight : flights) {
    ranks[flight.rank].flight = &flight;
    for (const FlightGroup& group : flight.groups) {
      GroupView& view = groups_[group.name];
      if (view.ranks.size() < group.ranks.size()) view.ranks = group.ranks;
    }
    for (const FlightOperation& operation : flight.operations) {
      const std::optional<CollectiveId> id = id_of(flight, operation);
      if (!id) continue;
      groups_[id->group].collectives[id->sequence][flight.rank] = &operation;
      std::uint64_t& last = last_entered_[id->group][flight.rank];
      last = std::max(last, id->sequence);
    }
  }
  for (const RankEnd& end : ends) ranks[end.rank].end = &end;
  for (auto& [rank, view] : ranks) {
    view.rank = rank;
    ranks_.push_back(view);
  }
}

RankView JobView::at(Rank rank) const {
  const auto found = std::ranges::lower_bound(ranks_, rank, {}, &RankView::rank);
  return found != ranks_.end() && found->rank == rank ? *found : RankView{.rank = rank};
}

std::optional<CollectiveId> JobView::id_of(const Flight& flight,
                                           const FlightOperation& operation) const {
  const FlightGroup* const group = group_of(flight, operation);
  if (group == nullptr || is_message(operation.kind.operation)) return std::nullopt;
  return CollectiveId{group->name, operation.sequence};
}

std::optional<std::uint64_t> JobView::last_entered(Rank rank, const std::string& group) const {
  if (at(rank).flight == nullptr) return std::nullopt;
  const auto found = last_entered_.find(group);
  if (found == last_entered_.end() || !found->second.contains(rank)) return 0;
  return found->second.at(rank);
}

const FlightOperation* JobView::unfinished(Rank rank) const {
  const Flight* const flight = at(rank).flight;
  if (flight == nullptr) return nullptr;
  const FlightOperation* message = nullptr;
  for (const FlightOperation& operation : flight->operations) {
    if (!operation.is_unfinished() || is_background(*flight, operation)) continue;
    if (!is_message(operation.kind.operation)) return &operation;
    if (message == nullptr) message = &operation;
  }
  return message;
}

const FlightOperation* JobView::last_finished(Rank rank) const {
  const Flight* const flight = at(rank).flight;
  if (flight == nullptr) return nullptr;
  const FlightOperation* last = nullptr;
  for (const FlightOperation& operation : flight->operations) {
    if (operation.is_unfinished() || is_background(*flight, operation)) continue;
    if (last == nullptr || *operation.end >= *last->end) last = &operation;
  }
  return last;
}

std::vector<Rank> JobView::waits_on(Rank rank) const {
  const FlightOperation* const operation = unfinished(rank);
  if (operation == nullptr) return {};
  const std::optional<CollectiveId> id = id_of(*at(rank).flight, *operation);
  const Rank peer = operation->kind.root;
  if (is_message(operation->kind.operation)) {
    return peer == kAnySource || peer == rank ? std::vector<Rank>() : std::vector{peer};
  }
  std::vector<Rank> missing;
  if (id) {
    for (const Rank other : groups_.at(id->group).ranks) {
      const auto entered = last_entered(other, id->group);
      if (entered ? *entered < id->sequence : operation->waited_for == other) {
        missing.push_back(other);
      }
    }
  }
  if (missing.empty() && operation->waited_for && *operation->waited_for != rank) {
    missing.push_back(*operation->waited_for);
  }
  std::ranges::sort(missing);
  return missing;
}

std::vector<Rank> JobView::waiters_of(Rank rank) const {
  std::vector<Rank> waiters;
  for (const RankView& view : ranks_) {
    const std::vector<Rank> on = waits_on(view.rank);
    if (std::ranges::binary_search(on, rank)) waiters.push_back(view.rank);
  }
  return waiters;
}

std::vector<Rank> JobView::companions_of(Rank rank) const {
  const FlightOperation* const operation = unfinished(rank);
  if (operation == nullptr) return {};
  const std::optional<CollectiveId> id = id_of(*at(rank).flight, *operation);
  if (!id) return {rank};
  std::vector<Rank> companions;
  for (const auto& [other, theirs] : groups_.at(id->group).collectives.at(id->sequence)) {
    if (theirs->is_unfinished()) companions.push_back(other);
  }
  return companions;
}

}  // namespace peal::observe
