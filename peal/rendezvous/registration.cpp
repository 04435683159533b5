#include "peal/rendezvous/registration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/per_process.h"
#include "peal/net/framing.h"
#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/held.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/rendezvous/session.h"
#include "peal/store/prefix_store.h"
#include "peal/transport/contact.h"

namespace peal::rendezvous {
namespace {

constexpr std::string_view kClaim = "rank/";
constexpr std::string_view kReady = "ready/";
constexpr std::string_view kNoSharedMemory = "no_shared_memory";
constexpr Bytes kMaxClaimText = 4_KiB;

std::vector<Rank> all_ranks(int world_size) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < world_size; ++rank) ranks.push_back(rank);
  return ranks;
}

std::string name_of(const transport::Contact& contact) {
  return fmt::format("process {} on {}", contact.pid, contact.hostname);
}

struct ProcessToken {
  std::string text = net::random_hex(64);
};

Claim own_claim() {
  static constinit PerProcess<ProcessToken> process;
  const transport::Contact contact = transport::own_contact();
  return {net::random_hex(64), process.get().text, contact.host_id, name_of(contact)};
}

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

}  // namespace

std::string own_process() { return name_of(transport::own_contact()); }

std::string Claim::encode() const {
  net::Writer writer;
  writer.put_text(token).put_text(process).put_text(host_id).put_text(who);
  return std::move(writer).take();
}

Claim Claim::decode(std::string_view bytes) {
  net::Reader reader(bytes, "claim of a rank");
  Claim claim;
  claim.token = reader.get_text(kMaxClaimText);
  claim.process = reader.get_text(kMaxClaimText);
  claim.host_id = reader.get_text(kMaxClaimText);
  claim.who = reader.get_text(kMaxClaimText);
  reader.finish();
  return claim;
}

Registration::Registration(std::shared_ptr<store::Store> store,
                           Launch launch,
                           EndedRanks ended,
                           Secret secret,
                           StoreOf store_of)
    : whole_store_(std::move(store)),
      store_(store::make_prefix_store(whole_store_, "meeting")),
      launch_(std::move(launch)),
      ended_(std::move(ended)),
      secret_(std::move(secret)),
      store_of_(store_of),
      claim_(own_claim()) {}

Registration::Earlier Registration::earlier() {
  const auto verdict = store_->try_get("verdict");
  if (!verdict || decode_verdict(*verdict)) return Earlier::kNone;
  const auto of = [&](Rank rank) {
    const auto claim = claim_of(rank);
    if (!claim || claim->process != claim_.process) return Earlier::kNone;
    return is_held(claim->token) ? Earlier::kHeld : Earlier::kLeft;
  };
  // Threads may be ranks, each of which leaves for itself.
  Earlier result = of(self().rank);
  if (result != Earlier::kNone) return result;
  const int size = SizeClaim::size_in(store_->try_get("world_size").value_or("")).value_or(0);
  // All ranks of a meeting that went well have left a claim: a number beyond them is not believed.
  for (Rank rank = 0; rank < size && claim_of(rank); ++rank) result = std::max(result, of(rank));
  return result;
}

std::optional<Claim> Registration::claim_of(Rank rank) {
  const auto claim = store_->try_get(key_of_rank(kClaim, rank));
  if (!claim) return std::nullopt;
  return Claim::decode(*claim);
}

/// A rank that finds a value without the job's seal tells the others, who may not have read it.
Verdict Registration::agree(Deadline deadline, const Interrupt& interrupt) {
  try {
    return agree_with_others(deadline, interrupt);
  } catch (const Error& error) {
    tell_of_misuse(error);
    throw;
  }
}

void Registration::tell_of_misuse(const Error& error) {
  if (error.kind() != ErrorKind::kUsage) return;
  tell_of(
      Error(error.kind(),
            fmt::format("rank {} ({}) could not meet: {}", self().rank, who(), error.message())));
}

Verdict Registration::agree_with_others(Deadline deadline, const Interrupt& interrupt) {
  const Error end(ErrorKind::kPeerLost,
                  fmt::format("rank {} ({}) ended before all ranks had met", self().rank, who()));
  store_->set_will("verdict", encode(Verdict(end)));
  Verdict verdict = object();
  if (verdict) {
    const Verdict first = pass(*store_, verdict);
    if (!first) return verdict;  // it went well for those who were there, who need not hear of this
  } else {
    if (store_of_ == StoreOf::kPeal) leave_wills(whole_store_);
    arrive();
    verdict = await_verdict(deadline, interrupt);
  }
  if (verdict) stay_for_others(*verdict, deadline);
  return verdict;
}

void Registration::hold() { note_held(claim_.token, whole_store_); }

bool Registration::is_one_host() { return !store_->try_get("several_hosts"); }

void Registration::say_no_shared_memory(const Error& why) {
  store_->compare_set(
      kNoSharedMemory, "", fmt::format("rank {} ({}): {}", self().rank, who(), why.message()));
}

std::optional<std::string> Registration::no_shared_memory() {
  return store_->try_get(kNoSharedMemory);
}

std::string Registration::job(Deadline deadline) { return store_->get("job", deadline); }

Secret Registration::secret(Deadline deadline) {
  if (!secret_.empty()) return secret_;
  std::string made_up = store_->get("secret", deadline);
  const Wiped wiped(made_up);
  if (made_up.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("rank 0 has a secret and rank {} has none: give all ranks the same "
                            "PEAL_SECRET",
                            self().rank));
  }
  if (store_->add("secret_read", 1) == self().world_size) store_->erase("secret");
  return Secret(made_up);
}

std::shared_ptr<store::Store> Registration::part_of_session(Deadline deadline) {
  if (store_of_ == StoreOf::kPeal) return whole_store_;
  const std::string name = session_name(*store_, self().rank, claim_.token, deadline);
  return store::make_prefix_store(whole_store_, "session/" + name);
}

std::shared_ptr<store::Store> Registration::store_of_groups(Deadline deadline) {
  auto part = part_of_session(deadline);
  if (store_of_ == StoreOf::kOther) leave_wills(part);
  return part;
}

Identity Registration::identity() {
  Identity result = self();
  if (launch_.local_is_known || is_one_host()) return result;
  result.local_rank = result.local_world_size = 0;
  for (const Rank rank : all_ranks(result.world_size)) {
    const auto claim = claim_of(rank);
    if (!claim || claim->host_id != claim_.host_id) continue;
    ++result.local_world_size;
    if (rank < result.rank) ++result.local_rank;
  }
  return result;
}

/// If this process dies, its peers must stop waiting for its address and for its part in later
/// groups. Only the accepted claimant of the rank leaves these wills: a rejected duplicate would
/// otherwise declare the real rank dead.
void Registration::leave_wills(const std::shared_ptr<store::Store>& store) {
  promise(*group_store(store, kWorld), self().rank, who());
  will_end(*store, self().rank, who());
}

/// What this process hears whose rank is another's: or its own, at this meeting already.
Error Registration::refusal(const Claim& first) {
  if (first.process == claim_.process) {
    const auto earlier = store_->try_get("verdict");
    const Verdict failure = earlier ? decode_verdict(*earlier) : std::nullopt;
    if (failure) return *failure;  // it came back to a meeting that failed
    return Error(ErrorKind::kUsage,
                 fmt::format("rank {} is given twice: {} has come to this meeting as that already; "
                             "use the group that it has, give each of its threads a rank of its "
                             "own, and, in a store that outlives a meeting, each meeting keys of "
                             "its own (make_prefix_store)",
                             self().rank,
                             who()));
  }
  return Error(ErrorKind::kUsage,
               fmt::format("rank {} is given twice: to {} and to {}; give each process a rank of "
                           "its own, and each job a place of its own to meet",
                           self().rank,
                           first.who,
                           who()));
}

/// Lays down what this process knows; returns what contradicts it.
Verdict Registration::object() {
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
  if (first != claim_.encode()) return refusal(Claim::decode(first));
  if (self().rank == 0) {
    store_->set("secret", secret_.empty() ? net::make_secret().text() : "");
    store_->set("job", launch_.job.empty() ? net::random_hex(16) : launch_.job);
  }
  if (store_->compare_set("host", "", claim_.host_id) != claim_.host_id) {
    store_->set("several_hosts", "");
  }
  return std::nullopt;
}

/// The last rank to arrive says that all are there. All others leave a mark. A rank that is stopped
/// between its claim and this place is known by its missing mark, also where it was the last.
void Registration::arrive() {
  if (store_->add("arrived", 1) != self().world_size) {
    store_->set(key_of_rank(kReady, self().rank), "");
    return;
  }
  if (store_of_ == StoreOf::kOther) {
    std::vector<std::string> tokens;
    for (const Rank rank : all_ranks(self().world_size)) {
      const auto claim = claim_of(rank);
      tokens.push_back(claim ? claim->token : "");
    }
    open_session(*store_, std::move(tokens));
  }
  pass(*store_, std::nullopt);
}

Verdict Registration::await_verdict(Deadline deadline, const Interrupt& interrupt) {
  const auto ranks = all_ranks(self().world_size);
  std::string vain;
  while (true) {
    const bool looks = ended_.are_noted() || interrupt;
    const Deadline slice = looks ? deadline.within(kLookForEndsEvery) : deadline;
    try {
      return decode_verdict(store_->get("verdict", slice));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
      vain = error.message();
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
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("the store in which the ranks meet does not answer any more: {}", vain));
  }
  if (const auto verdict = store_->try_get("verdict")) return decode_verdict(*verdict);
  return pass(*store_, who_is_late(ranks));
}

Error Registration::who_is_late(std::span<const Rank> ranks) {
  const auto absent = absent_ranks(*store_, kClaim, ranks);
  if (!absent.empty()) {
    return with_refusals(
        absence(absent, ranks.size(), "did not come to the meeting in time", kLookAtTheirStart));
  }
  return absence(absent_ranks(*store_, kReady, ranks),
                 ranks.size(),
                 "came to the meeting and did not get through it in time",
                 kLookWhatBecameOfThem);
}

/// No will says so in a store that lives on: one that was given, in which they met. Where all
/// have come by now, they look into the part of the group that they make.
void Registration::let_interrupt_all(const Interrupt& interrupt) {
  try {
    let_interrupt(interrupt);
  } catch (const Interrupted& interrupted) {
    tell_of(interrupted);
    throw;
  }
}

void Registration::tell_of(const Interrupted& interrupted) {
  tell_of(Error(ErrorKind::kPeerLost,
                fmt::format("rank {} ({}) was interrupted before all ranks had met: {}",
                            self().rank,
                            claim_.who,
                            error_of(interrupted).message())));
}

/// In the group's part of the store too, since all ranks may have come by now.
void Registration::tell_of(const Error& failure) {
  try {
    pass(*store_, failure);
    pass(*group_store(part_of_session(Deadline(Clock::now())), kWorld), failure);
  } catch (const Error&) {
    // The store does not take it: the others find out by their deadline.
  }
}

/// Who has not come may have been sent away: for want of the secret.
Error Registration::with_refusals(const Error& absence) {
  const auto refused = whole_store_->try_get(store::kRefusedKey);
  if (!refused) return absence;
  return Error(absence.kind(), fmt::format("{}; {}", absence.message(), *refused));
}

/// A bad verdict is of no use to ranks that come when the store is gone: they would wait for a
/// meeting that nobody holds. So rank 0 leaves last, if the others come soon; and while it has
/// not come itself (to a file, which the last to leave removes) nobody leaves. Where the verdict
/// is that one was lost, whoever has met is to hear of it within a second, rank 0 too.
void Registration::stay_for_others(const Error& verdict, Deadline deadline) {
  const bool is_loss = verdict.kind() == ErrorKind::kPeerLost;
  try {
    const bool stays = self().rank == 0 || !store_->try_get(key_of_rank(kClaim, 0));
    const Timeout patience = stays ? (is_loss ? kStayAfterLoss : Timeout(5000)) : Timeout(0);
    stay_until_told(*store_, agreed_size_, deadline.within(patience));
  } catch (const Error&) {
    // Whoever comes later is on its own; the verdict is what matters.
  }
}

}  // namespace peal::rendezvous
