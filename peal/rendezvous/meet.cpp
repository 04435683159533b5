#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/net/framing.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/place.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/rendezvous/url.h"
#include "peal/rendezvous/verdict.h"
#include "peal/store/prefix_store.h"
#include "peal/store/store.h"
#include "peal/transport/contact.h"

namespace peal::rendezvous {
namespace {

constexpr std::string_view kClaim = "rank/";
constexpr Bytes kMaxText = 4_KiB;

std::vector<Rank> all_ranks(int world_size) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < world_size; ++rank) ranks.push_back(rank);
  return ranks;
}

/// What a process lays down for its rank. No two processes' claims are the same.
struct Claim {
  std::string token;
  std::string host_id;
  std::string who;  // for messages

  std::string encode() const {
    net::Writer writer;
    writer.put_text(token).put_text(host_id).put_text(who);
    return std::move(writer).take();
  }

  static Claim decode(std::string_view bytes) {
    net::Reader reader(bytes, "claim of a rank");
    Claim claim;
    claim.token = reader.get_text(kMaxText);
    claim.host_id = reader.get_text(kMaxText);
    claim.who = reader.get_text(kMaxText);
    reader.finish();
    return claim;
  }
};

/// What a rank takes the world size for, laid down by the first to come: "4 for rank 1 (process 7
/// on b)".
struct SizeClaim {
  int size = 0;
  Rank rank = 0;
  std::string who;

  std::string encode() const { return fmt::format("{} for rank {} ({})", size, rank, who); }
  static std::optional<int> size_in(std::string_view text) {
    return parse_int(text.substr(0, text.find(' ')));
  }
};

/// One rank's part of the meeting, in the store that they share.
class Registration {
 public:
  Registration(std::shared_ptr<store::Store> store, Launch launch, EndedRanks ended)
      : whole_store_(std::move(store)),
        store_(store::make_prefix_store(whole_store_, "meeting")),
        launch_(std::move(launch)),
        ended_(std::move(ended)) {}

  /// Whether this is the store of a meeting that went well and that this process was at: of a group
  /// which it has left, and which others still hold.
  bool is_over() {
    const auto verdict = store_->try_get("verdict");
    if (!verdict || decode_verdict(*verdict)) return false;
    if (has_claim(self().rank)) return true;
    const int size = SizeClaim::size_in(store_->try_get("world_size").value_or("")).value_or(0);
    const auto ranks = all_ranks(size);
    return std::any_of(ranks.begin(), ranks.end(), [&](Rank rank) { return has_claim(rank); });
  }

  /// Whether this process has laid down a claim for the rank, now or earlier.
  bool has_claim(Rank rank) {
    const auto claim = store_->try_get(key_of_rank(kClaim, rank));
    return claim && Claim::decode(*claim).who == claim_.who;
  }

  /// Returns when all ranks are there and agree, or what the first to object said. Throws
  /// Interrupted, when the others have been told.
  Verdict agree(Deadline deadline, const Interrupt& interrupt) {
    leave_wills();
    Verdict verdict = object();
    if (verdict) {
      pass(*store_, verdict);
    } else {
      if (store_->add("arrived", 1) == self().world_size) pass(*store_, std::nullopt);
      verdict = await_verdict(deadline, interrupt);
    }
    if (verdict) stay_for_others(*verdict, deadline);
    return verdict;
  }

  const std::string& who() const { return claim_.who; }

  bool is_one_host() { return !store_->try_get("several_hosts"); }

  /// The job's name: the launcher's, or what rank 0 made up.
  std::string job(Deadline deadline) { return store_->get("job", deadline); }

  /// What rank 0 made up for those who have none.
  std::string secret(Deadline deadline) { return store_->get("secret", deadline); }

  /// Where ranks are is known only now, unless the launcher said it.
  Identity identity() {
    Identity result = self();
    if (launch_.local_is_known || is_one_host()) return result;
    result.local_rank = result.local_world_size = 0;
    for (const Rank rank : all_ranks(result.world_size)) {
      const auto claim = store_->try_get(key_of_rank(kClaim, rank));
      if (!claim || Claim::decode(*claim).host_id != claim_.host_id) continue;
      ++result.local_world_size;
      if (rank < result.rank) ++result.local_rank;
    }
    return result;
  }

 private:
  const Identity& self() const { return launch_.identity; }

  /// Should this process end, nobody waits for it: neither here nor, once all have met, for where
  /// it listens, nor in a group that is made later.
  void leave_wills() {
    const Rank rank = self().rank;
    const Error end(ErrorKind::kPeerLost,
                    fmt::format("rank {} ({}) ended before all ranks had met", rank, claim_.who));
    store_->set_will("verdict", encode(Verdict(end)));
    promise(*group_store(whole_store_, kWorld), rank, claim_.who);
    will_end(*whole_store_, rank, claim_.who);
  }

  /// Lays down what this process knows; returns what contradicts it.
  Verdict object() {
    const std::string size = SizeClaim{self().world_size, self().rank, claim_.who}.encode();
    const std::string first_size = store_->compare_set("world_size", "", size);
    const int agreed = SizeClaim::size_in(first_size).value_or(0);
    agreed_size_ = std::max(1, std::min(self().world_size, agreed));
    if (agreed != self().world_size) {
      return Error(
          ErrorKind::kUsage,
          fmt::format("the ranks disagree on the world size: it is {} and {}", size, first_size));
    }
    const std::string key = key_of_rank(kClaim, self().rank);
    const std::string first = store_->compare_set(key, "", claim_.encode());
    if (first != claim_.encode()) {
      const std::string other = Claim::decode(first).who;
      const auto earlier = store_->try_get("verdict");
      if (other == claim_.who && earlier && decode_verdict(*earlier)) {
        return decode_verdict(*earlier);  // it came back to a meeting that failed
      }
      if (other == claim_.who) {
        return Error(ErrorKind::kUsage,
                     fmt::format("rank {} is given twice: {} has met here already. Use the group "
                                 "that it has, or let all ranks destroy that before they meet here "
                                 "again",
                                 self().rank,
                                 other));
      }
      return Error(ErrorKind::kUsage,
                   fmt::format("rank {} is given twice: to {} and to {}; give each process a rank "
                               "of its own, and each job a place of its own to meet",
                               self().rank,
                               other,
                               claim_.who));
    }
    if (self().rank == 0) {
      store_->set("secret", net::make_secret());
      store_->set("job", launch_.job.empty() ? net::make_secret().substr(0, 16) : launch_.job);
    }
    if (store_->compare_set("host", "", claim_.host_id) != claim_.host_id) {
      store_->set("several_hosts", "");
    }
    return std::nullopt;
  }

  Verdict await_verdict(Deadline deadline, const Interrupt& interrupt) {
    const auto ranks = all_ranks(self().world_size);
    while (true) {
      const bool looks = ended_.are_noted() || interrupt;
      const Deadline slice = looks ? deadline.within(kLookForEndsEvery) : deadline;
      try {
        return decode_verdict(store_->get("verdict", slice));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kTimeout) throw;
      }
      if (deadline.passed()) break;
      let_interrupt_all(interrupt);
      try {
        ended_.check(ranks, "came to the meeting");
      } catch (const Error& lost) {
        return pass(*store_, lost);
      }
    }
    constexpr Timeout kToAnswer{100};
    if (!store_->answers(Deadline::after(kToAnswer))) {
      throw Error(ErrorKind::kTimeout, "it answered before");
    }
    const auto absent = absent_ranks(*store_, kClaim, ranks);
    if (absent.empty())
      return pass(*store_, Error(ErrorKind::kTimeout, "the last rank came too late"));
    return pass(*store_, with_refusals(absence(absent, ranks.size(), "come to the meeting")));
  }

  /// No will says so in a store that lives on: one that was given, in which they met. Where all
  /// have come by now, they look into the part of the group that they make.
  void let_interrupt_all(const Interrupt& interrupt) {
    try {
      let_interrupt(interrupt);
    } catch (const Interrupted& interrupted) {
      tell_of(interrupted);
      throw;
    }
  }

  void tell_of(const Interrupted& interrupted) {
    const Error end(ErrorKind::kPeerLost,
                    fmt::format("rank {} ({}) was interrupted before all ranks had met: {}",
                                self().rank,
                                claim_.who,
                                error_of(interrupted).message()));
    try {
      pass(*store_, end);
      pass(*group_store(whole_store_, kWorld), end);
    } catch (const Error&) {
      // Nobody is to wait for this one, and it not for the store.
    }
  }

  /// Who has not come may have been sent away: for want of the secret.
  Error with_refusals(const Error& absence) {
    const auto refused = whole_store_->try_get(store::kRefusedKey);
    if (!refused) return absence;
    return Error(absence.kind(), fmt::format("{}; {}", absence.message(), *refused));
  }

  /// A bad verdict is of no use to ranks that come when the store is gone: they would wait for a
  /// meeting that nobody holds. So rank 0 leaves last, if the others come soon; and while it has
  /// not come itself (to a file, which the last to leave removes) nobody leaves. Where the verdict
  /// is that one was lost, whoever has met is to hear of it within a second, rank 0 too.
  void stay_for_others(const Error& verdict, Deadline deadline) {
    const bool is_loss = verdict.kind() == ErrorKind::kPeerLost;
    try {
      const bool stays = self().rank == 0 || !store_->try_get(key_of_rank(kClaim, 0));
      const Timeout patience = stays ? (is_loss ? kStayAfterLoss : Timeout(5000)) : Timeout(0);
      stay_until_told(*store_, agreed_size_, deadline.within(patience));
    } catch (const Error&) {
      // Whoever comes later is on its own; the verdict is what matters.
    }
  }

  std::shared_ptr<store::Store> whole_store_;
  std::unique_ptr<store::Store> store_;  // of the meeting
  Launch launch_;
  EndedRanks ended_;
  int agreed_size_ = 1;  // the smaller where ranks disagree
  Claim claim_ = own_claim();

  static Claim own_claim() {
    const transport::Contact contact = transport::own_contact();
    return {net::make_secret(),
            contact.host_id,
            fmt::format("process {} on {}", contact.pid, contact.hostname)};
  }
};

Error silence_of_rank_0(Rank self, const Error& timeout) {
  return Error(ErrorKind::kTimeout,
               fmt::format("rank 0, which serves the meeting, does not answer rank {}: it "
                           "stands still (its process is stopped), or its host or the line to it "
                           "is gone ({})",
                           self,
                           timeout.message()));
}

/// Processes may meet again where they met before. They do not leave at the same moment, so who
/// comes back early waits until the store of the earlier meeting is gone, and does not hold it
/// meanwhile. Not so rank 0 that finds itself as rank 0 at a port or socket: it serves that store
/// itself.
std::shared_ptr<store::Store> open_new_store(const Place& place,
                                             const Launch& launch,
                                             const Config& config,
                                             const EndedRanks& ended,
                                             Deadline deadline,
                                             const Report& report,
                                             const Interrupt& interrupt) {
  constexpr auto kLongestPause = std::chrono::milliseconds(100);
  auto pause = std::chrono::milliseconds(10);
  const bool may_serve = launch.identity.rank == 0 && !std::holds_alternative<FilePlace>(place);
  while (true) {
    std::shared_ptr<store::Store> store =
        open_store(place, launch, config, ended, deadline, report, interrupt);
    try {
      Registration registration(store, launch, ended);
      if (!registration.is_over() || (may_serve && registration.has_claim(0))) return store;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kTimeout) {
        throw silence_of_rank_0(launch.identity.rank, error);
      }
      if (error.kind() != ErrorKind::kPeerLost) throw;  // it goes just now
    }
    if (deadline.within(pause).at() == deadline.at())
      return store;  // the meeting says what is wrong
    store.reset();
    let_interrupt(interrupt);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
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
  verdict = registration.agree(deadline, interrupt);
  if (verdict) throw Error(*verdict);
  Meeting meeting;
  meeting.identity = registration.identity();
  meeting.self = registration.who();
  meeting.job = registration.job(deadline);
  meeting.secret = config.secret.empty() ? registration.secret(deadline) : config.secret;
  meeting.ends = ends;
  meeting.is_one_host = registration.is_one_host();
  meeting.store = std::move(store);
  return meeting;
}

/// What has become of the meeting where the store that rank 0 serves says no more.
Error loss_of_rank_0(Rank self, const Error& error) {
  if (error.kind() == ErrorKind::kTimeout) return silence_of_rank_0(self, error);
  if (error.kind() != ErrorKind::kPeerLost) return error;
  return Error(ErrorKind::kPeerLost,
               fmt::format("rank 0 ended before all ranks had met: {}", error.message()));
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
    return meet_in(std::move(store), launch, config, ends, deadline, interrupt, verdict);
  } catch (const Error& error) {
    if (verdict) throw;
    throw loss_of_rank_0(launch.identity.rank, error);
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
