#include "peal/observe/waits.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "peal/observe/evidence.h"
#include "peal/observe/make_diagnosis.h"
#include "peal/observe/operation_text.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// Each rank waits for the next one. The last rank waits for no known rank, or for a rank earlier
/// in the chain; then `ring` is the index of the earlier rank.
struct Chain {
  std::vector<Rank> ranks;
  std::optional<std::size_t> ring;
};

Chain chain_from(const JobView& job, Rank start) {
  Chain chain{.ranks = {start}, .ring = std::nullopt};
  while (true) {
    const std::vector<Rank> on = job.waits_on(chain.ranks.back());
    if (on.empty()) return chain;
    // A rank that is in no operation blocks all others.
    const auto idle =
        std::ranges::find_if(on, [&](Rank rank) { return job.unfinished(rank) == nullptr; });
    const Rank next = idle != on.end() ? *idle : on.front();
    const auto known = std::ranges::find(chain.ranks, next);
    if (known != chain.ranks.end()) {
      chain.ring = static_cast<std::size_t>(known - chain.ranks.begin());
      return chain;
    }
    chain.ranks.push_back(next);
  }
}

Diagnosis deadlock(const JobView& job, std::vector<Rank> ring) {
  // First the rank with the fewest companions in its operation: it is most likely in the wrong
  // place.
  const auto alone =
      std::ranges::min_element(ring, {}, [&](Rank rank) { return job.companions_of(rank).size(); });
  std::rotate(ring.begin(), alone, ring.end());
  std::vector<Rank> sorted = ring;
  std::ranges::sort(sorted);
  std::string text = fmt::format("{} wait for each other", ranks_text(sorted));
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Flight& flight = *job.at(ring[i]).flight;
    text += fmt::format("{} rank {} in {}",
                        i == 0 ? ":" : ",",
                        ring[i],
                        operation_text(flight, *job.unfinished(ring[i])));
  }
  return make_diagnosis(job, Diagnosis::Cause::kDeadlock, ring, text);
}

/// Whether `other` has finished the collective that `rank` has not finished.
bool has_finished_it(const JobView& job, Rank other, Rank rank) {
  const FlightOperation& operation = *job.unfinished(rank);
  const FlightGroup* const group = group_of(*job.at(rank).flight, operation);
  if (group == nullptr || is_message(operation.kind.operation)) return false;
  const auto& collectives = job.groups().at(group->name).collectives;
  const auto by_rank = collectives.find(operation.sequence);
  if (by_rank == collectives.end()) return false;
  const auto theirs = by_rank->second.find(other);
  return theirs != by_rank->second.end() && !theirs->second->is_unfinished();
}

/// Detects lost or late data: ranks of the ring have all entered the collective that one of them
/// waits in, so no call is missing.
std::optional<Diagnosis> lost_on_the_way(const JobView& job, const std::vector<Rank>& ring) {
  if (std::ranges::any_of(ring, [&](Rank rank) { return was_stopped(job.at(rank)); })) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Rank waiter = ring[i], other = ring[(i + 1) % ring.size()];
    if (!has_finished_it(job, other, waiter)) continue;
    const std::string text = fmt::format(
        "rank {} waited in {} for rank {}, which has finished it: the data of rank {} "
        "has not arrived, so check the network between them",
        waiter,
        operation_text(*job.at(waiter).flight, *job.unfinished(waiter)),
        other,
        other);
    return make_diagnosis(job, Diagnosis::Cause::kError, {waiter, other}, text);
  }
  const std::vector<Rank> companions = job.companions_of(ring.front());
  const bool are_together = std::ranges::all_of(
      ring, [&](Rank rank) { return std::ranges::binary_search(companions, rank); });
  if (ring.size() < 2 || !are_together) return std::nullopt;
  const std::string text = fmt::format(
      "{} waited for each other's data in {}, which all of them had entered: the data was late or "
      "lost, so check the network between them",
      ranks_text(companions),
      operation_text(*job.at(ring.front()).flight, *job.unfinished(ring.front())));
  return make_diagnosis(job, Diagnosis::Cause::kError, ring, text);
}

/// Diagnoses the ranks that `waiter` waited for and that are in no operation.
Diagnosis missing(const JobView& job, Rank waiter) {
  std::vector<Rank> ranks = job.waits_on(waiter);
  std::erase_if(ranks, [&](Rank rank) { return job.unfinished(rank) != nullptr; });
  std::string text = fmt::format("{} {}", ranks_text(ranks), absence(job, ranks, waiter));
  if (ranks.size() == 1) text += ": " + last_word(job, ranks.front());
  return make_diagnosis(job, Diagnosis::Cause::kMissing, ranks, text);
}

/// As far as is known, all ranks have entered the operation of `waiter`, and yet it has not ended.
Diagnosis stuck(const JobView& job, Rank waiter) {
  const Flight& flight = *job.at(waiter).flight;
  return make_diagnosis(
      job,
      Diagnosis::Cause::kMissing,
      {waiter},
      fmt::format("rank {} did not finish {}, and its record does not name the rank "
                  "that it waited for",
                  waiter,
                  operation_text(flight, *job.unfinished(waiter))));
}

/// Blames a rank of the chain that a signal has stopped in its operation, if all others are in
/// operations too. Nothing if all ranks of the chain are stopped: then none of them is the cause.
std::optional<Diagnosis> stopped_in_operation(const JobView& job, const std::vector<Rank>& chain) {
  const auto is_stopped = [&](Rank rank) { return was_stopped(job.at(rank)); };
  const auto rank = std::ranges::find_if(chain, is_stopped);
  if (rank == chain.end() || std::ranges::all_of(chain, is_stopped)) return std::nullopt;
  if (job.unfinished(chain.back()) == nullptr) return std::nullopt;  // that rank blocks the others
  const FlightOperation* const operation = job.unfinished(*rank);
  const RankView view = job.at(*rank);
  return make_diagnosis(job,
                        Diagnosis::Cause::kMissing,
                        {*rank},
                        fmt::format("rank {} did not finish {}: {}",
                                    *rank,
                                    operation_text(*view.flight, *operation),
                                    process_text(view)));
}

}  // namespace

std::string absence(const JobView& job, const std::vector<Rank>& missing, Rank waiter) {
  const Flight& flight = *job.at(waiter).flight;
  const FlightOperation& operation = *job.unfinished(waiter);
  const std::string text = operation_text(flight, operation);
  if (operation.kind.operation == Operation::kRecv) {
    return fmt::format("never sent what rank {} waited for in {}", waiter, text);
  }
  if (operation.kind.operation == Operation::kSend) {
    return fmt::format("never received what rank {} sent in {}", waiter, text);
  }
  std::vector<Rank> others = job.companions_of(waiter);
  std::erase_if(others, [&](Rank rank) { return std::ranges::binary_search(missing, rank); });
  return fmt::format("never entered {}, in which {} waited", text, ranks_text(others));
}

std::string last_word(const JobView& job, Rank rank) {
  const RankView view = job.at(rank);
  if (view.flight == nullptr) return "it left no record, and " + process_text(view);
  const FlightOperation* const last = job.last_finished(rank);
  const std::string what = last == nullptr ? "it finished no operation before"
                                           : fmt::format("it last finished {} at {}",
                                                         operation_text(*view.flight, *last),
                                                         time_text(*last->end));
  return fmt::format("{}, and {}", what, process_text(view));
}

Diagnosis wait_of(const JobView& job, Rank start) {
  const Chain chain = chain_from(job, start);
  if (auto diagnosis = stopped_in_operation(job, chain.ranks)) return *diagnosis;
  if (chain.ring) {
    const auto begin = chain.ranks.begin() + static_cast<std::ptrdiff_t>(*chain.ring);
    const std::vector<Rank> ring(begin, chain.ranks.end());
    return lost_on_the_way(job, ring).value_or(deadlock(job, ring));
  }
  if (job.unfinished(chain.ranks.back()) != nullptr) return stuck(job, chain.ranks.back());
  return missing(job, chain.ranks[chain.ranks.size() - 2]);
}

}  // namespace peal::observe
