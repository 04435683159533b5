#include "peal/observe/why.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/observe/conclude.h"
#include "peal/observe/disagreement.h"
#include "peal/observe/evidence.h"
#include "peal/observe/job_view.h"
#include "peal/observe/operation_text.h"
#include "peal/observe/phrases.h"
#include "peal/observe/straggler.h"
#include "peal/observe/waits.h"

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

bool has_verdict(const RankView& view) {
  return view.flight != nullptr && view.flight->verdict.has_value();
}

/// Whether the rank has ended its group itself, by `ProcessGroup::abort`.
bool is_own_abort(const RankView& view) {
  return view.flight->verdict->text.find(aborted_by(view.rank)) != std::string::npos;
}

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
  if (has_verdict(view)) {
    if (is_own_abort(view))
      return Suspicion{Cause::kException, view.rank, host, view.flight->verdict->at};
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

/// ", while ranks 0 and 1 waited for it"
std::string waiters_text(const JobView& job, Rank rank) {
  std::vector<Rank> waiters = job.waiters_of(rank);
  std::erase(waiters, rank);
  return waiters.empty() ? "" : fmt::format(", while {} waited for it", ranks_text(waiters));
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
  if (has_verdict(view) && is_own_abort(view)) {
    const std::string& text = view.flight->verdict->text;
    const std::string by = aborted_by(view.rank);
    const std::size_t at = text.find(by);
    return fmt::format("aborted {}: \"{}\"", text.substr(0, at), text.substr(at + by.size()));
  }
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

std::optional<Rank> first_that_waits(const JobView& job) {
  for (const RankView& view : job.ranks()) {
    if (job.unfinished(view.rank) != nullptr) return view.rank;
  }
  return std::nullopt;
}

Diagnosis timeout(const JobView& job, Rank rank) {
  // A difference that nobody found out in time, as of a send and a collective, is the reason too.
  if (auto diagnosis = disagreement(job)) return *diagnosis;
  if (job.unfinished(rank) != nullptr) return wait_of(job, rank);
  for (const RankView& view : job.ranks()) {
    if (view.flight != nullptr || !stood_still(view)) continue;
    return conclude(
        job,
        Cause::kMissing,
        {view.rank},
        fmt::format("rank {} did not get through the meeting: {}", view.rank, process_text(view)));
  }
  return error(job, rank);
}

// ---- when nobody is suspect

/// Of those with a verdict; by the clocks of their hosts.
Rank first_to_fail(const JobView& job) {
  const RankView* first = nullptr;
  for (const RankView& view : job.ranks()) {
    if (!has_verdict(view)) continue;
    if (first == nullptr || view.flight->verdict->at < first->flight->verdict->at) first = &view;
  }
  return first->rank;
}

bool fell_silent(const RankView& view) {
  if (view.flight != nullptr && (view.flight->verdict || view.flight->departure)) return false;
  return view.end == nullptr ||
         (view.end->fate != RankEnd::Fate::kEndedByLauncher && has_ended(view.end->fate));
}

/// Whether the last thing that some rank did was to wait for it.
bool is_missed(const JobView& job, Rank rank) {
  return std::ranges::any_of(job.ranks(), [&](const RankView& view) {
    return view.flight != nullptr && !view.flight->operations.empty() &&
           view.flight->operations.back().waited_for == rank;
  });
}

/// The rank that ended without a word while others lost a peer: best one that was waited for.
std::optional<Diagnosis> silent_loss(const JobView& job) {
  if (std::ranges::none_of(job.ranks(), has_verdict)) return std::nullopt;
  std::optional<Rank> silent;
  for (const RankView& view : job.ranks()) {
    // Of a job that still runs a rank may not have heard yet.
    if (!fell_silent(view) || (silent && !is_missed(job, view.rank))) continue;
    silent = view.rank;
    if (is_missed(job, view.rank)) break;
  }
  if (silent) return process_ended(job, *silent);
  // Some have left in order, and too early.
  for (const RankView& view : job.ranks()) {
    const std::vector<Rank> on = job.waits_on(view.rank);
    const auto early = std::ranges::find_if(on, [&](Rank rank) {
      const Flight* const flight = job.at(rank).flight;
      // One with a verdict did not leave of itself.
      return flight != nullptr && flight->departure && !flight->verdict &&
             job.unfinished(rank) == nullptr;
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
  return error(job, first_to_fail(job));
}

// ---- when all went well

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
        return disagreement(job).value_or(error(job, first->rank));
      case Cause::kMissing:
        return timeout(job, first->rank);
      case Cause::kError:
      case Cause::kDeadlock:
      case Cause::kStraggler:
      case Cause::kNothing:
        return error(job, first->rank);
    }
  }
  if (!job.ranks().empty() && std::ranges::all_of(job.ranks(), stood_still)) return nothing(job);
  if (auto diagnosis = silent_loss(job)) return *diagnosis;
  if (auto diagnosis = disagreement(job)) return *diagnosis;
  if (const std::optional<Rank> waiter = first_that_waits(job)) return wait_of(job, *waiter);
  if (auto diagnosis = straggler(job)) return *diagnosis;
  return nothing(job);
}

}  // namespace peal::observe
