#include "peal/observe/why.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "peal/observe/disagreement.h"
#include "peal/observe/evidence.h"
#include "peal/observe/job_view.h"
#include "peal/observe/make_diagnosis.h"
#include "peal/observe/named_waits.h"
#include "peal/observe/phrases.h"
#include "peal/observe/straggler.h"
#include "peal/observe/waits.h"

namespace peal::observe {
namespace {

using Cause = Diagnosis::Cause;

// ---- possible causes

/// A failure on a rank that no other rank caused.
struct Suspicion {
  Cause cause = Cause::kNothing;
  Rank rank = 0;
  std::string host;
  WallTime at;
};

bool has_error(const RankView& view) {
  return view.flight != nullptr && view.flight->first_error.has_value();
}

/// Whether the error reports only that the connection to a rank was lost.
bool is_lost_connection(const FlightError& error) {
  return is_loss(error.kind) &&
         (error.cause == ErrorCause::kUnknown || error.cause == ErrorCause::kUnreachable);
}

/// Whether the rank ended its group itself, or left it while others still needed it. An error that
/// reports only a lost connection does not count, even if it names this rank: a peer that lost the
/// connection may have sent the error.
bool is_own_doing(const Flight& flight) {
  const FlightError& error = *flight.first_error;
  return error.rank == flight.rank && !is_lost_connection(error) &&
         (is_loss(error.kind) || error.cause == ErrorCause::kLeft);
}

bool has_left_by_exception(const Flight& flight) {
  return flight.departure && flight.departure->how == Departure::kByException &&
         (!flight.first_error || flight.first_error->at > flight.departure->at);
}

std::optional<Cause> cause_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kPeerLost:
    case ErrorKind::kAborted:
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

/// The failure that the rank caused itself. If an error of another rank reached the rank before its
/// process ended, the end of its process is not a cause.
std::optional<Suspicion> suspicion_of(const RankView& view) {
  const std::string host = view.flight != nullptr ? view.flight->host : "";
  if (view.flight != nullptr && has_left_by_exception(*view.flight)) {
    return Suspicion{Cause::kException, view.rank, host, view.flight->departure->at};
  }
  if (has_error(view)) {
    if (is_own_doing(*view.flight))
      return Suspicion{Cause::kException, view.rank, host, view.flight->first_error->at};
    const std::optional<Cause> cause = cause_of(view.flight->first_error->kind);
    if (!cause) return std::nullopt;
    return Suspicion{*cause, view.rank, host, view.flight->first_error->at};
  }
  if (view.end == nullptr || !ended_badly(view.end->state)) return std::nullopt;
  return Suspicion{Cause::kProcessEnded, view.rank, host, view.end->at};
}

/// Orders causes between hosts, whose clocks may differ: the end of a rank explains an error of
/// another rank better than the reverse.
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
std::string location_text(const JobView& job, Rank rank) {
  const Flight* const flight = job.at(rank).flight;
  if (flight == nullptr) return "";
  if (const FlightOperation* const operation = job.unfinished(rank)) {
    return ", in the middle of " + operation_text(*flight, *operation);
  }
  // The rank may have been between two agreements on them.
  if (const std::string names = names_in_flight(*flight); !names.empty()) {
    return ", with " + names + " in flight";
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
      view.end != nullptr ? view.end->text
                          : "ended without a message: its record shows no error and no departure";
  return make_diagnosis(job,
                        Cause::kProcessEnded,
                        {rank},
                        fmt::format("the process of rank {} {}{}{}",
                                    rank,
                                    how,
                                    location_text(job, rank),
                                    waiters_text(job, rank)));
}

/// How the rank ended its group, with its own text if it gave one: `threw "out of luck"`.
std::string what_it_did(const RankView& view) {
  if (!has_error(view) || !is_own_doing(*view.flight)) return "left by an exception";
  const FlightError& first_error = *view.flight->first_error;
  const auto with_reason = [&](std::string_view what) {
    return fmt::format("{}: \"{}\"", what, first_error.reason);
  };
  switch (first_error.cause) {
    case ErrorCause::kThrew:
      return fmt::format("threw \"{}\"", first_error.reason);
    case ErrorCause::kAborted:
      return with_reason("aborted " + group_text(*view.flight, first_error.group));
    case ErrorCause::kInterrupted:
      return with_reason("was interrupted");
    case ErrorCause::kUnknown:
    case ErrorCause::kKilled:
    case ErrorCause::kExited:
    case ErrorCause::kLeft:
    case ErrorCause::kStopped:
    case ErrorCause::kUnreachable:
    case ErrorCause::kMismatch:
      return fmt::format("ended its group: {}", first_error.text);
  }
  return "left by an exception";
}

Diagnosis exception(const JobView& job, Rank rank) {
  const RankView view = job.at(rank);
  const bool has_text = view.end != nullptr && ended_badly(view.end->state);
  return make_diagnosis(job,
                        Cause::kException,
                        {rank},
                        fmt::format("rank {} {}{}{}{}",
                                    rank,
                                    what_it_did(view),
                                    location_text(job, rank),
                                    waiters_text(job, rank),
                                    has_text ? "; its process " + view.end->text : ""));
}

Diagnosis error(const JobView& job, Rank rank) {
  const FlightError& first_error = *job.at(rank).flight->first_error;
  return make_diagnosis(job,
                        first_error.kind == ErrorKind::kMismatch ? Cause::kMismatch : Cause::kError,
                        {rank},
                        fmt::format("rank {} was the first to fail: {}: {}",
                                    rank,
                                    name_of(first_error.kind),
                                    first_error.text));
}

std::optional<Rank> first_that_waits(const JobView& job) {
  for (const RankView& view : job.ranks()) {
    if (job.unfinished(view.rank) != nullptr) return view.rank;
  }
  return std::nullopt;
}

Diagnosis timeout(const JobView& job, Rank rank) {
  // A mismatch that was not detected in time, as between a send and a collective, is also a reason.
  if (auto diagnosis = disagreement(job)) return *diagnosis;
  if (job.unfinished(rank) != nullptr) return wait_of(job, rank);
  for (const RankView& view : job.ranks()) {
    if (view.flight != nullptr || !was_stopped(view)) continue;
    return make_diagnosis(
        job,
        Cause::kMissing,
        {view.rank},
        fmt::format("rank {} did not reach the rendezvous: {}", view.rank, process_text(view)));
  }
  return error(job, rank);
}

// ---- when no rank is suspect

/// The first rank with an error, by the clocks of the hosts.
Rank first_to_fail(const JobView& job) {
  const RankView* first = nullptr;
  for (const RankView& view : job.ranks()) {
    if (!has_error(view)) continue;
    if (first == nullptr || view.flight->first_error->at < first->flight->first_error->at)
      first = &view;
  }
  return first->rank;
}

bool fell_silent(const RankView& view) {
  if (view.flight != nullptr && (view.flight->first_error || view.flight->departure)) return false;
  return view.end == nullptr ||
         (view.end->state != RankEnd::State::kEndedByLauncher && has_ended(view.end->state));
}

/// Whether the last operation of some rank waited for `rank`.
bool is_missed(const JobView& job, Rank rank) {
  return std::ranges::any_of(job.ranks(), [&](const RankView& view) {
    return view.flight != nullptr && !view.flight->operations.empty() &&
           view.flight->operations.back().waited_for == rank;
  });
}

/// The other rank to which the rank has lost the connection, by its first error.
std::optional<Rank> rank_lost_by(const RankView& view) {
  if (!has_error(view) || !is_lost_connection(*view.flight->first_error)) return std::nullopt;
  const std::optional<Rank> lost = view.flight->first_error->rank;
  return lost == view.rank ? std::nullopt : lost;
}

/// The diagnosis if a rank has lost another rank, and the other rank has recorded an error too. So
/// the other rank lived on: a connection between ranks broke, and no rank is the cause.
std::optional<Diagnosis> broken_connection(const JobView& job) {
  // Other ranks receive the error of a rank and may record it as theirs. So two ranks that have
  // lost each other go first, then the earliest error.
  const RankView* witness = nullptr;
  std::pair<bool, WallTime> best;  // whether they have not lost each other, and when
  for (const RankView& view : job.ranks()) {
    const std::optional<Rank> other = rank_lost_by(view);
    if (!other || !has_error(job.at(*other))) continue;
    const bool lost_each_other = rank_lost_by(job.at(*other)) == view.rank;
    const std::pair order(!lost_each_other, view.flight->first_error->at);
    if (witness != nullptr && best <= order) continue;
    witness = &view;
    best = order;
  }
  if (witness == nullptr) return std::nullopt;
  const Rank other = *rank_lost_by(*witness);
  const bool is_pair = !best.first || witness->flight->world_size == 2;
  const std::string connection =
      is_pair ? fmt::format(
                    "the connection between ranks {} and {} broke: check the network "
                    "between them",
                    std::min(witness->rank, other),
                    std::max(witness->rank, other))
              : fmt::format("a connection of rank {} broke: check the network of its host", other);
  return make_diagnosis(job,
                        Cause::kError,
                        {},
                        fmt::format("{}; the error of rank {}: {}",
                                    connection,
                                    witness->rank,
                                    witness->flight->first_error->text));
}

/// Finds the rank that ended without a message while others lost a peer. Prefers a rank that others
/// waited for.
std::optional<Diagnosis> silent_loss(const JobView& job) {
  if (std::ranges::none_of(job.ranks(), has_error)) return std::nullopt;
  std::optional<Rank> silent;
  for (const RankView& view : job.ranks()) {
    // While the job still runs, the loss may not have reached every rank yet.
    if (!fell_silent(view) || (silent && !is_missed(job, view.rank))) continue;
    silent = view.rank;
    if (is_missed(job, view.rank)) break;
  }
  if (silent) return process_ended(job, *silent);
  // Some ranks have left without an error, but too early.
  for (const RankView& view : job.ranks()) {
    const std::vector<Rank> on = job.waits_on(view.rank);
    const auto early = std::ranges::find_if(on, [&](Rank rank) {
      const Flight* const flight = job.at(rank).flight;
      // A rank with an error left because of an error.
      return flight != nullptr && flight->departure && !flight->first_error &&
             job.unfinished(rank) == nullptr;
    });
    if (early == on.end()) continue;
    return make_diagnosis(job,
                          Cause::kProcessEnded,
                          {*early},
                          fmt::format("rank {} left too early: it {}; {}",
                                      *early,
                                      absence(job, {*early}, view.rank),
                                      last_word(job, *early)));
  }
  if (auto diagnosis = broken_connection(job)) return *diagnosis;
  return error(job, first_to_fail(job));
}

// ---- when nothing failed

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
  return make_diagnosis(job, Cause::kNothing, {}, text);
}

}  // namespace

bool lost_another(const Flight& flight) {
  return flight.first_error && is_loss(flight.first_error->kind) && !is_own_doing(flight);
}

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
  if (!job.ranks().empty() && std::ranges::all_of(job.ranks(), was_stopped)) return nothing(job);
  if (auto diagnosis = silent_loss(job)) return *diagnosis;
  if (auto diagnosis = named_wait(job)) return *diagnosis;
  if (auto diagnosis = disagreement(job)) return *diagnosis;
  if (const std::optional<Rank> waiter = first_that_waits(job)) return wait_of(job, *waiter);
  if (auto diagnosis = straggler(job)) return *diagnosis;
  return nothing(job);
}

}  // namespace peal::observe
