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
#include "peal/rendezvous/held.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/place.h"
#include "peal/rendezvous/registration.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/url.h"
#include "peal/rendezvous/verdict.h"
#include "peal/store/memory_store.h"
#include "peal/store/sealed_store.h"
#include "peal/store/store.h"
#include "peal/transport/shared_file.h"

namespace peal::rendezvous {
namespace {

Error silence_of_rank_0(Rank self, const Error& timeout) {
  return Error(ErrorKind::kTimeout,
               fmt::format("rank 0, which serves the meeting, does not answer rank {}: it "
                           "stands still (its process is stopped), or its host or the line to it "
                           "is gone ({})",
                           self,
                           timeout.message()));
}

/// What has become of the meeting where the store says no more: but for a file rank 0 serves it.
Error loss_of_rank_0(const Place& place, Rank self, const Error& error) {
  if (std::holds_alternative<FilePlace>(place)) return error;
  if (error.kind() == ErrorKind::kTimeout) return silence_of_rank_0(self, error);
  if (error.kind() != ErrorKind::kPeerLost) return error;
  return Error(ErrorKind::kPeerLost,
               fmt::format("rank 0 ended before all ranks had met: {}", error.message()));
}

/// Of a process that meets where it has met, and has not left that meeting.
Error second_meeting() {
  return Error(ErrorKind::kUsage,
               fmt::format("{} has met here already: use the group that it has, or let all ranks "
                           "destroy it, and the groups made of it, before they meet here again",
                           own_process()));
}

Error others_still_meet(Rank rank) {
  return Error(ErrorKind::kTimeout,
               fmt::format("rank {} was at a meeting here before, which others have not let go of: "
                           "let all ranks destroy that group, and the groups made of it, before "
                           "they meet here again",
                           rank));
}

/// How long a thread of this process may take to let go of the meeting that it was at, once that is
/// seen to be held.
constexpr Timeout kToLetGo{500};
constexpr auto kPause = std::chrono::milliseconds(10);

/// A file whose ranks have all come opens for nobody, so that it cannot tell who they are.
void check_file_is_not_held(const FilePlace& place,
                            Rank rank,
                            Deadline deadline,
                            const Interrupt& interrupt) {
  const Deadline to_let_go = deadline.within(kToLetGo);
  while (is_file_held(place.path, rank)) {
    if (to_let_go.passed()) throw second_meeting();
    let_interrupt(interrupt);
    std::this_thread::sleep_for(kPause);
  }
}

/// Processes may meet again where they met before. They do not leave at the same moment, so who
/// comes back early waits until the store of the earlier meeting is gone, and does not hold it
/// meanwhile; rank 0 too, while what it served ends. Who has not left would wait for itself.
std::shared_ptr<store::Store> open_new_store(const Place& place,
                                             const Launch& launch,
                                             const Config& config,
                                             const EndedRanks& ended,
                                             Deadline deadline,
                                             const Report& report,
                                             const Interrupt& interrupt) {
  using Earlier = Registration::Earlier;
  constexpr auto kLongestPause = std::chrono::milliseconds(100);
  constexpr auto kToOpen = std::chrono::milliseconds(200);  // so that the last try is a fair one
  const Rank rank = launch.identity.rank;
  if (const auto* file = std::get_if<FilePlace>(&place)) {
    check_file_is_not_held(*file, rank, deadline, interrupt);
  }
  std::optional<Deadline> to_let_go;
  for (auto pause = kPause;; pause = std::min(2 * pause, kLongestPause)) {
    std::shared_ptr<store::Store> store =
        open_store(place, launch, config, ended, deadline, report, interrupt);
    const bool is_last = deadline.within(pause + kToOpen).at() == deadline.at();
    Earlier earlier = Earlier::kLeft;
    try {
      earlier = Registration(store, launch, ended).earlier();
    } catch (const Error& error) {
      // Else it goes just now.
      if (error.kind() != ErrorKind::kPeerLost || is_last) {
        throw loss_of_rank_0(place, rank, error);
      }
    }
    if (earlier == Earlier::kNone) return store;
    if (earlier == Earlier::kHeld) {
      if (!to_let_go) to_let_go = deadline.within(kToLetGo);
      if (is_last || to_let_go->passed()) throw second_meeting();
    }
    if (is_last) throw others_still_meet(rank);
    store.reset();
    let_interrupt(interrupt);
    std::this_thread::sleep_for(pause);
  }
}

/// What the parts of a meeting have in common.
struct Circumstances {
  const Launch& launch;
  const Config& config;
  const observe::EndPlace& ends;
  Deadline deadline;
  const Report& report;
  const Interrupt& interrupt;
};

/// `verdict`: what the ranks have agreed on, where they have.
Meeting meet_in(std::shared_ptr<store::Store> store,
                StoreOf store_of,
                const Circumstances& here,
                Verdict& verdict) {
  Registration registration(
      store, here.launch, EndedRanks(here.ends), here.config.secret, store_of);
  if (here.config.transport == TransportChoice::kAuto) {
    if (const auto why = transport::why_no_shared_files()) registration.say_no_shared_memory(*why);
  }
  verdict = registration.agree(here.deadline, here.interrupt);
  if (verdict) throw Error(*verdict);
  registration.hold();
  try {
    Meeting meeting;
    meeting.store = registration.store_of_groups(here.deadline);
    meeting.identity = registration.identity();
    meeting.self = registration.who();
    meeting.job = registration.job(here.deadline);
    meeting.secret = registration.secret(here.deadline);
    meeting.ends = here.ends;
    meeting.is_one_host = registration.is_one_host();
    meeting.no_shared_memory = registration.no_shared_memory();
    return meeting;
  } catch (const Error& error) {
    registration.tell_of_misuse(error);
    throw;
  }
}

/// In a store that the application gives.
Meeting meet_in_given(const Wish& wish,
                      const Environment& environment,
                      const Circumstances& here,
                      Verdict& verdict) {
  const auto& [launch, config, ends, deadline, report, interrupt] = here;
  if (launch.identity.world_size == 1) {
    return meet_in(store::make_memory_store(), StoreOf::kPeal, here, verdict);
  }
  std::shared_ptr<store::Store> given =
      store::make_sealed_store(wish.store, config.secret, config.timeout);
  if (!is_all_here(wish, launch, environment)) {
    check_secrecy_of_given(launch, config, report);
    return meet_in(std::move(given), StoreOf::kOther, here, verdict);
  }
  auto store =
      open_on_this_machine(*given, launch, config, EndedRanks(ends), deadline, report, interrupt);
  try {
    return meet_in(std::move(store), StoreOf::kPeal, here, verdict);
  } catch (const Error& error) {
    if (verdict) throw;
    throw loss_of_rank_0(LocalPlace{}, launch.identity.rank, error);
  }
}

/// Said once for a job, by rank 0: the ranks run, and the user may not know at what risk.
void warn_of_plain_lines(const Meeting& meeting, const Config& config, const Report& report) {
  const bool is_plain = sealing_of(config) != Sealing::kEncrypted;
  if (meeting.is_one_host || !is_plain || meeting.identity.rank != 0) return;
  report(Severity::kWarning,
         "the ranks are on several machines and PEAL_TLS is off: a program on the way between "
         "them can read and change what they send, and where objects are pickled (in Python) a "
         "change can run code in a rank; set PEAL_TLS=on unless that network is yours alone");
}

Meeting meet_at_place(const Wish& wish,
                      const Config& config,
                      const Environment& environment,
                      Deadline deadline,
                      const Report& report,
                      const Interrupt& interrupt) {
  const Url url = parse_url(wish.url);
  const Launch launch = read_launch(wish, url, environment);
  // Other launchers note no ends.
  observe::EndPlace ends;
  if (const auto job = environment("PEAL_JOB")) ends = {config.flight_dir, *job};
  const Circumstances here{launch, config, ends, deadline, report, interrupt};
  Verdict verdict;
  if (wish.store) return meet_in_given(wish, environment, here, verdict);
  const Place place = choose_place(url, launch, environment, {::getuid(), ::getppid()});
  auto store = open_new_store(place, launch, config, EndedRanks(ends), deadline, report, interrupt);
  try {
    Meeting meeting = meet_in(store, StoreOf::kPeal, here, verdict);
    if (const auto* file = std::get_if<FilePlace>(&place)) {
      note_file_held(file->path, launch.identity.rank, store);
    }
    return meeting;
  } catch (const Error& error) {
    if (verdict) throw;
    throw loss_of_rank_0(place, launch.identity.rank, error);
  }
}

}  // namespace

Meeting meet(const Wish& wish,
             const Config& config,
             const Environment& environment,
             Deadline deadline,
             const Report& report,
             const Interrupt& interrupt) {
  try {
    Meeting meeting = meet_at_place(wish, config, environment, deadline, report, interrupt);
    if (wish.ranks == RanksOf::kWholeJob) warn_of_plain_lines(meeting, config, report);
    return meeting;
  } catch (const Interrupted& interrupted) {
    std::rethrow_exception(interrupted.cause);
  }
}

}  // namespace peal::rendezvous
