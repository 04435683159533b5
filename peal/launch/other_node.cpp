#include "peal/launch/other_node.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

bool is_here(const LaunchOptions& options, Rank rank) {
  const Rank first = first_rank_of(options);
  return rank >= first && rank < first + options.ranks;
}

/// The first error of the rank, if it says that a rank of another node was lost or did not come.
const observe::FlightError* loss_of_other(std::span<const observe::Flight> flights,
                                          const LaunchOptions& options,
                                          Rank rank) {
  const auto flight = std::ranges::find(flights, rank, &observe::Flight::rank);
  if (flight == flights.end() || !flight->first_error) return nullptr;
  const observe::FlightError& error = *flight->first_error;
  const bool is_wait = is_loss(error.kind) || error.kind == ErrorKind::kTimeout;
  const bool is_of_other = error.rank && !is_here(options, *error.rank);
  return is_wait && is_of_other ? &error : nullptr;
}

}  // namespace

std::optional<CauseOnOtherNode> cause_on_other_node(const observe::Diagnosis& diagnosis,
                                                    std::span<const observe::Flight> flights,
                                                    const LaunchOptions& options) {
  if (options.node.is_only()) return std::nullopt;
  std::optional<CauseOnOtherNode> found;
  for (const Rank rank : diagnosis.ranks) {
    if (!is_here(options, rank)) {
      if (!found) found = {rank, rank / options.ranks, diagnosis.sentence};
      continue;
    }
    const observe::FlightError* const loss = loss_of_other(flights, options, rank);
    if (loss == nullptr) return std::nullopt;  // a rank of this node is a cause
    if (found) continue;
    const int node = *loss->rank / options.ranks;
    found = {*loss->rank,
             node,
             fmt::format("Rank {} failed because of rank {}, which is on node {}: {}: {}.",
                         rank,
                         *loss->rank,
                         node,
                         name_of(loss->kind),
                         loss->text)};
  }
  if (!found) return found;
  for (const observe::Flight& flight : flights) {
    if (is_here(options, flight.rank) && loss_of_other(flights, options, flight.rank) != nullptr) {
      found->victims.push_back(flight.rank);
    }
  }
  return found;
}

}  // namespace peal::launch
