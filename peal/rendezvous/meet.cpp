#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/given_store.h"
#include "peal/rendezvous/held_meetings.h"
#include "peal/rendezvous/launcher_environment.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/registration.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/store_location.h"
#include "peal/rendezvous/url.h"
#include "peal/store/memory_store.h"
#include "peal/store/sealed_store.h"
#include "peal/store/store.h"
#include "peal/system/shared_file.h"

namespace peal::rendezvous {
namespace {

Error silence_of_rank_0(Rank self, const Error& timeout) {
  return Error(ErrorKind::kTimeout,
               fmt::format("rank 0, which serves the meeting, does not answer rank {}: its process "
                           "is stopped, or its host or the connection to it is lost ({})",
                           self,
                           timeout.message()),
               {.rank = 0});
}

/// The error to throw when the store fails. Rank 0 serves the store unless it is a file, so the
/// store's error means that rank 0 is lost or stopped.
Error loss_of_rank_0(const StoreLocation& place, Rank self, const Error& error) {
  if (std::holds_alternative<StoreInFile>(place)) return error;
  if (error.kind() == ErrorKind::kTimeout) return silence_of_rank_0(self, error);
  if (error.kind() != ErrorKind::kPeerLost) return error;
  return Error(ErrorKind::kPeerLost,
               fmt::format("rank 0 ended before all ranks had met: {}", error.message()),
               {.rank = 0});
}

/// For a process that meets again here although it has not left its earlier meeting.
Error second_meeting() {
  return Error(ErrorKind::kUsage,
               fmt::format("{} has met here already: use its group, or let all ranks destroy that "
                           "group and the groups made from it before they meet here again",
                           own_process()));
}

Error others_still_meet(Rank rank) {
  return Error(ErrorKind::kTimeout,
               fmt::format("rank {} has left an earlier meeting here, but other ranks have not: "
                           "let all ranks destroy that group and the groups made from it before "
                           "they meet here again",
                           rank));
}

/// If this process still holds the earlier meeting, another of its threads may be leaving just now.
/// This is how long that thread may take.
constexpr Timeout kToRelease{500};
constexpr auto kPause = std::chrono::milliseconds(10);

/// A file store accepts no further process once all its ranks have come. So the claims in the file
/// cannot be read, and this process asks its own records.
void check_file_is_not_held(const StoreInFile& place,
                            Rank rank,
                            Deadline deadline,
                            const Interrupt& interrupt) {
  const Deadline to_release = deadline.within(kToRelease);
  while (is_file_held(place.path, rank)) {
    if (to_release.passed()) throw second_meeting();
    let_interrupt(interrupt);
    std::this_thread::sleep_for(kPause);
  }
}

/// Opens a store without an earlier meeting in it. Processes may meet again at the same place, but
/// they do not leave at the same moment. So a process that comes back early waits until the earlier
/// store is gone, and does not hold that store meanwhile. This includes rank 0, whose old server
/// may still be ending. A process that has not left itself is rejected: it would wait for itself.
std::shared_ptr<store::Store> open_new_store(const StoreLocation& place,
                                             const MeetContext& context) {
  using Earlier = Registration::Earlier;
  constexpr auto kLongestPause = std::chrono::milliseconds(100);
  constexpr auto kToOpen = std::chrono::milliseconds(200);  // the time that the last try needs
  const Rank rank = context.launch.identity.rank;
  const Deadline deadline = context.deadline;
  if (const auto* file = std::get_if<StoreInFile>(&place)) {
    check_file_is_not_held(*file, rank, deadline, context.interrupt);
  }
  std::optional<Deadline> to_release;
  for (auto pause = kPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::shared_ptr<store::Store> store = open_store(place, context);
    const bool is_last = deadline.within(pause + kToOpen).at() == deadline.at();
    Earlier earlier = Earlier::kLeft;
    try {
      earlier = Registration(store, context).earlier();
    } catch (const Error& error) {
      // A loss before the last try means that the earlier store is ending just now: retry.
      if (error.kind() != ErrorKind::kPeerLost || is_last) {
        throw loss_of_rank_0(place, rank, error);
      }
    }
    if (earlier == Earlier::kNone) return store;
    if (earlier == Earlier::kHeld) {
      if (!to_release) to_release = deadline.within(kToRelease);
      if (is_last || to_release->passed()) throw second_meeting();
    }
    if (is_last) throw others_still_meet(rank);
    store.reset();
    let_interrupt(context.interrupt);
    std::this_thread::sleep_for(pause);
  }
}

/// `result` returns the error on which the ranks agreed, if they did.
Meeting meet_in(std::shared_ptr<store::Store> store,
                StoreOf store_of,
                const MeetContext& context,
                MeetingResult& result) {
  Registration registration(store, context, store_of);
  if (context.config.transport == TransportChoice::kAuto) {
    if (const auto why = why_no_shared_files()) registration.say_no_shared_memory(*why);
  }
  result = registration.agree();
  if (result) throw Error(*result);
  registration.hold();
  try {
    Meeting meeting;
    meeting.store = registration.store_of_groups();
    meeting.identity = registration.identity();
    meeting.self = registration.process_name();
    meeting.job = registration.job();
    meeting.secret = registration.secret();
    meeting.ends = context.ended.place();
    meeting.is_one_host = registration.is_one_host();
    meeting.no_shared_memory = registration.no_shared_memory();
    return meeting;
  } catch (const Error& error) {
    registration.tell_of_misuse(error);
    throw;
  }
}

/// Meets in a store that the application gives.
Meeting meet_in_given(const MeetRequest& request,
                      const Environment& environment,
                      const MeetContext& context,
                      MeetingResult& result) {
  const LauncherEnvironment& launch = context.launch;
  if (launch.identity.world_size == 1) {
    return meet_in(store::make_memory_store(), StoreOf::kPeal, context, result);
  }
  std::shared_ptr<store::Store> given =
      store::make_sealed_store(request.store, context.config.secret, context.config.timeout);
  if (!is_all_here(request, launch, environment)) {
    check_secrecy_of_given(context);
    return meet_in(std::move(given), StoreOf::kOther, context, result);
  }
  auto store = open_on_this_machine(*given, context);
  try {
    return meet_in(std::move(store), StoreOf::kPeal, context, result);
  } catch (const Error& error) {
    if (result) throw;
    throw loss_of_rank_0(StoreAtSocket{}, launch.identity.rank, error);
  }
}

/// Rank 0 warns once for the job: the ranks run, and the user may not know the risk.
void warn_of_unencrypted_links(const Meeting& meeting, const Config& config, const Report& report) {
  const bool is_plain = link_protection_of(config) != LinkProtection::kEncrypted;
  if (meeting.is_one_host || !is_plain || meeting.identity.rank != 0) return;
  report(
      "the ranks are on several machines and PEAL_TLS is off: a program on the network between "
      "them can read and change their data, and a change to pickled objects (in Python) can "
      "run code in a rank; set PEAL_TLS=on unless nobody else can use that network");
}

Meeting meet_at_place(const MeetRequest& request,
                      const Url& url,
                      const Environment& environment,
                      const MeetContext& context) {
  const LauncherEnvironment& launch = context.launch;
  MeetingResult result;
  if (request.store) return meet_in_given(request, environment, context, result);
  const StoreLocation place = choose_place(url, launch, environment, {::getuid(), ::getppid()});
  auto store = open_new_store(place, context);
  try {
    Meeting meeting = meet_in(store, StoreOf::kPeal, context, result);
    if (const auto* file = std::get_if<StoreInFile>(&place)) {
      note_file_held(file->path, launch.identity.rank, store);
    }
    return meeting;
  } catch (const Error& error) {
    if (result) throw;
    throw loss_of_rank_0(place, launch.identity.rank, error);
  }
}

}  // namespace

Meeting meet(const MeetRequest& request,
             const Config& config,
             const Environment& environment,
             Deadline deadline,
             const Report& report,
             const Interrupt& interrupt) {
  const Url url = parse_url(request.url);
  const LauncherEnvironment launch = read_launcher_environment(request, url, environment);
  // Only launchers that set PEAL_JOB record how ranks end.
  const auto job = environment("PEAL_JOB");
  const EndedRanks ended(job ? observe::EndPlace{config.flight_dir, *job} : observe::EndPlace());
  const MeetContext context{launch, config, ended, deadline, report, interrupt};
  try {
    Meeting meeting = meet_at_place(request, url, environment, context);
    if (request.ranks == RanksOf::kWholeJob) warn_of_unencrypted_links(meeting, config, report);
    return meeting;
  } catch (const Interrupted& interrupted) {
    std::rethrow_exception(interrupted.cause);
  }
}

}  // namespace peal::rendezvous
