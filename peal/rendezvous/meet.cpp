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
#include "peal/rendezvous/held.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/place.h"
#include "peal/rendezvous/registration.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/url.h"
#include "peal/rendezvous/verdict.h"
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

/// Nobody proves anything to a store that was given: what is laid into it is as safe as it is.
void say_how_safe(const Launch& launch, const Config& config, const Report& report) {
  if (!config.secret.empty() || launch.identity.rank != 0 || launch.identity.world_size == 1) {
    return;
  }
  report(Severity::kWarning,
         "no secret was given (PEAL_SECRET), so rank 0 makes one and hands it to the others "
         "through the store in which they meet: whoever can read that can join them");
}

/// `verdict`: what the ranks have agreed on, where they have.
Meeting meet_in(std::shared_ptr<store::Store> store,
                const Launch& launch,
                const Config& config,
                const observe::EndPlace& ends,
                Deadline deadline,
                const Interrupt& interrupt,
                Verdict& verdict) {
  Registration registration(store, launch, EndedRanks(ends));
  if (config.transport == TransportChoice::kAuto) {
    if (const auto why = transport::why_no_shared_files()) registration.say_no_shared_memory(*why);
  }
  verdict = registration.agree(deadline, interrupt);
  if (verdict) throw Error(*verdict);
  registration.hold();
  Meeting meeting;
  meeting.identity = registration.identity();
  meeting.self = registration.who();
  meeting.job = registration.job(deadline);
  meeting.secret = config.secret.empty() ? registration.secret(deadline) : config.secret;
  meeting.ends = ends;
  meeting.is_one_host = registration.is_one_host();
  meeting.no_shared_memory = registration.no_shared_memory();
  meeting.store = std::move(store);
  return meeting;
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
  Verdict verdict;
  if (wish.store) {
    say_how_safe(launch, config, report);
    return meet_in(wish.store, launch, config, ends, deadline, interrupt, verdict);
  }
  const Place place = choose_place(url, launch, environment, {::getuid(), ::getppid()});
  auto store = open_new_store(place, launch, config, EndedRanks(ends), deadline, report, interrupt);
  try {
    Meeting meeting = meet_in(store, launch, config, ends, deadline, interrupt, verdict);
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
    return meet_at_place(wish, config, environment, deadline, report, interrupt);
  } catch (const Interrupted& interrupted) {
    std::rethrow_exception(interrupted.cause);
  }
}

}  // namespace peal::rendezvous
