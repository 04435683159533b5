#include "peal/observe/why.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "peal/observe/evidence.h"
#include "peal/observe/job_view.h"
#include "peal/observe/operation_text.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

using Cause = Diagnosis::Cause;

// ---- what comes into question

/// Something that went wrong on a rank and was not the doing of another one.
struct Suspicion {
  Cause cause = Cause::kNothing;
  Rank rank = 0;
  std::string host;
  WallTime at;
};

bool has_left_by_exception(const Flight& flight) {
  return flight.departure && flight.departure->how == Departure::kByException &&
         (!flight.verdict || flight.verdict->at > flight.departure->at);
}

std::optional<Cause> cause_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kPeerLost:
      return std::nullopt;  // a victim
    case ErrorKind::kMismatch:
      return Cause::kMismatch;
    case ErrorKind::kTimeout:
      return Cause::kMissing;
    case ErrorKind::kUsage:
    case ErrorKind::kUnsupported:
    case ErrorKind::kResource:
    case ErrorKind::kBug:
      return Cause::kError;
  }
  return std::nullopt;
}

/// What the rank did of itself. One that was told of an error before it ended is no cause by its
/// end.
std::optional<Suspicion> suspicion_of(const RankView& view) {
  const std::string host = view.flight != nullptr ? view.flight->host : "";
  if (view.flight != nullptr && has_left_by_exception(*view.flight)) {
    return Suspicion{Cause::kException, view.rank, host, view.flight->departure->at};
  }
  if (view.flight != nullptr && view.flight->verdict) {
    const std::optional<Cause> cause = cause_of(view.flight->verdict->kind);
    if (!cause) return std::nullopt;
    return Suspicion{*cause, view.rank, host, view.flight->verdict->at};
  }
  if (view.end == nullptr || view.end->fate != RankEnd::Fate::kEndedBadly) return std::nullopt;
  return Suspicion{Cause::kProcessEnded, view.rank, host, view.end->at};
}

/// Between hosts whose clocks may differ: an end explains an error better than the reverse.
int weight_of(Cause cause) {
  switch (cause) {
    case Cause::kException:
    case Cause::kProcessEnded:
      return 0;
    case Cause::kMismatch:
    case Cause::kError:
      return 1;
    case Cause::kMissing:
    case Cause::kDeadlock:
    case Cause::kStraggler:
    case Cause::kNothing:
      return 2;
  }
  return 2;
}

bool goes_before(const Suspicion& one, const Suspicion& other) {
  if (one.host == other.host) return one.at < other.at;
  return weight_of(one.cause) < weight_of(other.cause);
}

std::optional<Suspicion> first_suspicion(const JobView& job) {
  std::optional<Suspicion> first;
  for (const RankView& view : job.ranks()) {
    const std::optional<Suspicion> suspicion = suspicion_of(view);
    if (suspicion && (!first || goes_before(*suspicion, *first))) first = suspicion;
  }
  return first;
}

// ---- sentences

/// ", in the middle of all_reduce #12 (...) of the group world"
std::string whereabouts(const JobView& job, Rank rank) {
  const Flight* const flight = job.at(rank).flight;
  if (flight == nullptr) return "";
  if (const FlightOperation* const operation = job.unfinished(rank)) {
    return ", in the middle of " + operation_text(*flight, *operation);
  }
  if (const FlightOperation* const last = job.last_finished(rank)) {
    return ", after " + operation_text(*flight, *last);
  }
  return ", before its first operation";
}

/// ", for which ranks 0 and 1 waited"
std::string waiters_text(const JobView& job, Rank rank) {
  std::vector<Rank> waiters = job.waiters_of(rank);
  std::erase(waiters, rank);
  return waiters.empty() ? "" : fmt::format(", while {} waited for it", ranks_text(waiters));
}

Diagnosis conclude(const JobView& job, Cause cause, std::vector<Rank> ranks, std::string text) {
  Diagnosis diagnosis{.cause = cause,
                      .ranks = std::move(ranks),
                      .sentence = as_sentence(std::move(text)),
                      .evidence = {}};
  diagnosis.evidence = evidence(job, diagnosis.ranks);
  return diagnosis;
}

Diagnosis process_ended(const JobView& job, Rank rank) {
  const RankView view = job.at(rank);
  const std::string how =
      view.end != nullptr ? view.end->text : "ended without a word: its record just stops";
  return conclude(job,
                  Cause::kProcessEnded,
                  {rank},
                  fmt::format("the process of rank {} {}{}{}",
                              rank,
                              how,
                              whereabouts(job, rank),
                              waiters_text(job, rank)));
}

/// `threw "out of luck"`, where the rank could tell.
std::string what_it_threw(const RankView& view) {
  const auto& verdict = view.flight->verdict;
  const std::string beginning = threw(view.rank);
  if (!verdict || !verdict->text.starts_with(beginning)) return "left by an exception";
  return fmt::format("threw \"{}\"", verdict->text.substr(beginning.size()));
}

Diagnosis exception(const JobView& job, Rank rank) {
  const RankView view = job.at(rank);
  const bool has_text = view.end != nullptr && view.end->fate == RankEnd::Fate::kEndedBadly;
  return conclude(job,
                  Cause::kException,
                  {rank},
                  fmt::format("rank {} {}{}{}{}",
                              rank,
                              what_it_threw(view),
                              whereabouts(job, rank),
                              waiters_text(job, rank),
                              has_text ? "; its process " + view.end->text : ""));
}

Diagnosis error(const JobView& job, Rank rank) {
  const FlightVerdict& verdict = *job.at(rank).flight->verdict;
  return conclude(
      job,
      verdict.kind == ErrorKind::kMismatch ? Cause::kMismatch : Cause::kError,
      {rank},
      fmt::format(
          "rank {} was the first to fail: {}: {}", rank, name_of(verdict.kind), verdict.text));
}

// ---- ranks in different operations

/// What all ranks must have in common.
struct Side {
  std::vector<Rank> ranks;
  const FlightOperation* operation = nullptr;
  const Flight* flight = nullptr;
};

bool agree(const FlightOperation& one, const FlightOperation& other) {
  OperationKind mine = one.kind;
  mine.group = other.kind.group;  // a number of the rank's own
  return mine.word() == other.kind.word() && one.count == other.count;
}

/// The sides that differ in the first collective of any group in which ranks do, the smallest
/// first, of two equal ones that without the lowest rank; empty if none differ.
std::vector<Side> sides_of_first_difference(const JobView& job) {
  for (const auto& [name, group] : job.groups()) {
    for (const auto& [sequence, ranks] : group.collectives) {
      std::vector<Side> sides;
      for (const auto& [rank, operation] : ranks) {
        const auto same = std::ranges::find_if(
            sides, [own = operation](const Side& side) { return agree(*side.operation, *own); });
        Side& side = same != sides.end() ? *same : sides.emplace_back();
        side.ranks.push_back(rank);
        side.operation = operation;
        side.flight = job.at(rank).flight;
      }
      if (sides.size() < 2) continue;
      std::ranges::sort(sides, [](const Side& one, const Side& other) {
        if (one.ranks.size() != other.ranks.size()) return one.ranks.size() < other.ranks.size();
        return one.ranks.front() > other.ranks.front();
      });
      return sides;
    }
  }
  return {};
}

std::string algorithm_text(const Side& side) {
  const std::size_t number = side.operation->kind.algorithm;
  return number < side.flight->algorithms.size() ? ", by " + side.flight->algorithms[number] : "";
}

std::string side_text(const Side& side, bool with_algorithm) {
  return fmt::format("{} {} in {}{}",
                     ranks_text(side.ranks),
                     side.ranks.size() == 1 ? "was" : "were",
                     operation_text(*side.flight, *side.operation),
                     with_algorithm ? algorithm_text(side) : "");
}

std::optional<Diagnosis> mismatch(const JobView& job) {
  const std::vector<Side> sides = sides_of_first_difference(job);
  if (sides.empty()) return std::nullopt;
  const bool looks_the_same = operation_text(*sides[0].flight, *sides[0].operation) ==
                              operation_text(*sides[1].flight, *sides[1].operation);
  std::string text = "ranks were in different operations: " + side_text(sides[0], looks_the_same);
  for (std::size_t i = 1; i < sides.size(); ++i) {
    text += (i == 1 ? " while " : ", and ") + side_text(sides[i], looks_the_same);
  }
  return conclude(job, Cause::kMismatch, sides[0].ranks, text);
}

// ---- ranks that wait

/// From a rank on, each waits for the next; the last one waits for nobody that is known, or for one
/// that was there before: then `ring` is where that one stands.
struct Chain {
  std::vector<Rank> ranks;
  std::optional<std::size_t> ring;
};

Chain chain_from(const JobView& job, Rank start) {
  Chain chain{.ranks = {start}, .ring = std::nullopt};
  while (true) {
    const std::vector<Rank> on = job.waits_on(chain.ranks.back());
    if (on.empty()) return chain;
    // Whoever is in no operation keeps all others waiting.
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
  // First the one that is with the fewest in what it does: most likely it is in the wrong place.
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
  return conclude(job, Cause::kDeadlock, ring, text);
}

/// "never entered all_reduce #12 (...) of the group world, in which ranks 0 and 1 waited"
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

/// The ranks that `waiter` waited for and that are in no operation.
Diagnosis missing(const JobView& job, Rank waiter) {
  std::vector<Rank> ranks = job.waits_on(waiter);
  std::erase_if(ranks, [&](Rank rank) { return job.unfinished(rank) != nullptr; });
  std::string text = fmt::format("{} {}", ranks_text(ranks), absence(job, ranks, waiter));
  if (ranks.size() == 1) text += ": " + last_word(job, ranks.front());
  return conclude(job, Cause::kMissing, ranks, text);
}

/// All have come to what `waiter` is in, as far as is known, and yet it has not ended.
Diagnosis stuck(const JobView& job, Rank waiter) {
  const Flight& flight = *job.at(waiter).flight;
  return conclude(job,
                  Cause::kMissing,
                  {waiter},
                  fmt::format("rank {} did not get out of {}, and its record does not say for whom "
                              "it waited",
                              waiter,
                              operation_text(flight, *job.unfinished(waiter))));
}

/// Follows who waits for whom from `start`, which is in the middle of something.
Diagnosis wait_of(const JobView& job, Rank start) {
  const Chain chain = chain_from(job, start);
  if (chain.ring) {
    const auto begin = chain.ranks.begin() + static_cast<std::ptrdiff_t>(*chain.ring);
    return deadlock(job, {begin, chain.ranks.end()});
  }
  if (job.unfinished(chain.ranks.back()) != nullptr) return stuck(job, chain.ranks.back());
  return missing(job, chain.ranks[chain.ranks.size() - 2]);
}

std::optional<Rank> first_that_waits(const JobView& job) {
  for (const RankView& view : job.ranks()) {
    if (job.unfinished(view.rank) != nullptr) return view.rank;
  }
  return std::nullopt;
}

Diagnosis timeout(const JobView& job, Rank rank) {
  // A difference that nobody found out in time, as of a send and a collective, is the reason too.
  if (auto diagnosis = mismatch(job)) return *diagnosis;
  if (job.unfinished(rank) != nullptr) return wait_of(job, rank);
  return error(job, rank);
}

// ---- when nobody is suspect

/// The ranks that ended without a word while others lost a peer.
std::optional<Diagnosis> silent_loss(const JobView& job) {
  const auto lost = std::ranges::find_if(job.ranks(), [](const RankView& view) {
    return view.flight != nullptr && view.flight->verdict;
  });
  if (lost == job.ranks().end()) return std::nullopt;
  for (const RankView& view : job.ranks()) {
    const bool is_silent =
        view.flight == nullptr || (!view.flight->verdict && !view.flight->departure);
    const bool is_ended_by_other =
        view.end != nullptr && view.end->fate == RankEnd::Fate::kEndedByLauncher;
    if (is_silent && !is_ended_by_other) return process_ended(job, view.rank);
  }
  // Some have left in order, and too early.
  for (const RankView& view : job.ranks()) {
    const std::vector<Rank> on = job.waits_on(view.rank);
    const auto early = std::ranges::find_if(on, [&](Rank rank) {
      const Flight* const flight = job.at(rank).flight;
      return flight != nullptr && flight->departure && job.unfinished(rank) == nullptr;
    });
    if (early == on.end()) continue;
    return conclude(job,
                    Cause::kProcessEnded,
                    {*early},
                    fmt::format("rank {} left too early: it {}; {}",
                                *early,
                                absence(job, {*early}, view.rank),
                                last_word(job, *early)));
  }
  return error(job, lost->rank);
}

// ---- when all went well

struct Waiting {
  std::map<Rank, std::chrono::nanoseconds> by_rank;  // for whom
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds recorded{0};  // of all ranks
};

Waiting waiting_in(const JobView& job) {
  Waiting waiting;
  for (const RankView& view : job.ranks()) {
    if (view.flight == nullptr || view.flight->operations.empty()) continue;
    const std::vector<FlightOperation>& operations = view.flight->operations;
    WallTime end = operations.front().start;
    for (const FlightOperation& operation : operations) {
      if (operation.end) end = std::max(end, *operation.end);
      if (!operation.waited_for) continue;
      waiting.by_rank[*operation.waited_for] += operation.waited;
      waiting.total += operation.waited;
    }
    waiting.recorded += end - operations.front().start;
  }
  return waiting;
}

/// Shares below are everyday unevenness.
constexpr double kLeastShareOfWaiting = 0.6;
constexpr double kLeastShareOfTime = 0.05;

std::optional<Diagnosis> straggler(const JobView& job) {
  const Waiting waiting = waiting_in(job);
  const auto most =
      std::ranges::max_element(waiting.by_rank, {}, [](const auto& entry) { return entry.second; });
  if (most == waiting.by_rank.end() || waiting.total.count() == 0) return std::nullopt;
  const auto part = [&](std::chrono::nanoseconds of) {
    return of.count() == 0
               ? 1.0
               : static_cast<double>(most->second.count()) / static_cast<double>(of.count());
  };
  const double of_waiting = part(waiting.total);
  const double of_time = part(waiting.recorded);
  if (of_waiting < kLeastShareOfWaiting || of_time < kLeastShareOfTime) return std::nullopt;
  return conclude(job,
                  Cause::kStraggler,
                  {most->first},
                  fmt::format("nothing went wrong, but rank {} is slow: the others waited {} for "
                              "it, {:.0f} % of all their waiting and {:.0f} % of the time of all "
                              "ranks",
                              most->first,
                              length_text(most->second),
                              of_waiting * 100,
                              of_time * 100));
}

Diagnosis nothing(const JobView& job) {
  std::size_t finished = 0;
  for (const RankView& view : job.ranks()) {
    if (view.flight != nullptr) finished += view.flight->operations.size();
  }
  const std::string text =
      job.ranks().empty() ? std::string("there is no record of any rank")
                          : fmt::format("nothing went wrong in the last {} operations of {} ranks",
                                        finished,
                                        job.ranks().size());
  return conclude(job, Cause::kNothing, {}, text);
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::kNothing:
      return "nothing";
    case Cause::kStraggler:
      return "straggler";
    case Cause::kProcessEnded:
      return "process_ended";
    case Cause::kException:
      return "exception";
    case Cause::kMismatch:
      return "mismatch";
    case Cause::kError:
      return "error";
    case Cause::kMissing:
      return "missing";
    case Cause::kDeadlock:
      return "deadlock";
  }
  return "invalid";
}

Diagnosis diagnose(std::span<const Flight> flights, std::span<const RankEnd> ends) {
  const JobView job(flights, ends);
  if (const std::optional<Suspicion> first = first_suspicion(job)) {
    switch (first->cause) {
      case Cause::kProcessEnded:
        return process_ended(job, first->rank);
      case Cause::kException:
        return exception(job, first->rank);
      case Cause::kMismatch:
        return mismatch(job).value_or(error(job, first->rank));
      case Cause::kMissing:
        return timeout(job, first->rank);
      case Cause::kError:
      case Cause::kDeadlock:
      case Cause::kStraggler:
      case Cause::kNothing:
        return error(job, first->rank);
    }
  }
  if (auto diagnosis = silent_loss(job)) return *diagnosis;
  if (auto diagnosis = mismatch(job)) return *diagnosis;
  if (const std::optional<Rank> waiter = first_that_waits(job)) return wait_of(job, *waiter);
  if (auto diagnosis = straggler(job)) return *diagnosis;
  return nothing(job);
}

}  // namespace peal::observe
