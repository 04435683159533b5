#include "peal/rendezvous/registration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/serialize.h"
#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/held_meetings.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/rendezvous/session.h"
#include "peal/store/prefix_store.h"
#include "peal/system/per_process.h"
#include "peal/transport/link/contact.h"

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

/// The world size that a rank was given. The first rank to come stores it.
struct SizeClaim {
  int size = 0;
  Rank rank = 0;
  std::string process_name;
  int ranks_per_node = 0;  // 0: not known

  std::string encode() const {
    ByteWriter writer;
    writer.put_i32(size).put_i32(rank).put_text(process_name).put_i32(ranks_per_node);
    return std::move(writer).take();
  }
  static SizeClaim decode(std::string_view bytes) {
    ByteReader reader(bytes, "world size");
    SizeClaim claim;
    claim.size = reader.get_i32();
    claim.rank = reader.get_i32();
    claim.process_name = reader.get_text(kMaxClaimText);
    claim.ranks_per_node = reader.get_i32();
    reader.finish();
    return claim;
  }
  /// "4 for rank 1 (process 7 on b)"
  std::string text() const { return fmt::format("{} for rank {} ({})", size, rank, process_name); }
};

/// "; node 0 was started with -n 2 and node 1 with -n 3: ...", if that is the reason.
std::string nodes_text(SizeClaim a, SizeClaim b) {
  if (a.ranks_per_node <= 0 || b.ranks_per_node <= 0 || a.ranks_per_node == b.ranks_per_node) {
    return "";
  }
  const auto node = [](const SizeClaim& claim) { return claim.rank / claim.ranks_per_node; };
  if (node(a) > node(b)) std::swap(a, b);
  return fmt::format(
      "; node {} was started with -n {} and node {} with -n {}: give peal run the "
      "same -n on every node",
      node(a),
      a.ranks_per_node,
      node(b),
      b.ranks_per_node);
}

}  // namespace

std::string own_process() { return name_of(transport::own_contact()); }

std::string Claim::encode() const {
  ByteWriter writer;
  writer.put_text(token).put_text(process).put_text(host_id).put_text(process_name);
  return std::move(writer).take();
}

Claim Claim::decode(std::string_view bytes) {
  ByteReader reader(bytes, "claim of a rank");
  Claim claim;
  claim.token = reader.get_text(kMaxClaimText);
  claim.process = reader.get_text(kMaxClaimText);
  claim.host_id = reader.get_text(kMaxClaimText);
  claim.process_name = reader.get_text(kMaxClaimText);
  reader.finish();
  return claim;
}

Registration::Registration(std::shared_ptr<store::Store> store,
                           const MeetContext& context,
                           StoreOf store_of)
    : whole_store_(std::move(store)),
      store_(store::make_prefix_store(whole_store_, kMeetingPrefix)),
      context_(context),
      store_of_(store_of),
      claim_(own_claim()) {}

Registration::Earlier Registration::earlier() {
  const auto result = store_->try_get(kResultKey);
  if (!result || decode_result(*result)) return Earlier::kNone;
  const auto of = [&](Rank rank) {
    const auto claim = claim_of(rank);
    if (!claim || claim->process != claim_.process) return Earlier::kNone;
    return is_held(claim->token) ? Earlier::kHeld : Earlier::kLeft;
  };
  // Several threads of a process may be ranks, and each leaves alone. So check all ranks.
  Earlier found = of(self().rank);
  if (found != Earlier::kNone) return found;
  const auto size_claim = store_->try_get("world_size");
  const int size = size_claim ? SizeClaim::decode(*size_claim).size : 0;
  // Every rank of a successful meeting has left a claim. So the first missing claim ends the loop,
  // and a wrong, huge size costs nothing.
  for (Rank rank = 0; rank < size && claim_of(rank); ++rank) found = std::max(found, of(rank));
  return found;
}

std::optional<Claim> Registration::claim_of(Rank rank) {
  const auto claim = store_->try_get(key_of_rank(kClaim, rank));
  if (!claim) return std::nullopt;
  return Claim::decode(*claim);
}

/// A rank that finds a value without the job's seal notifies the other ranks, because they may not
/// have read that value.
MeetingResult Registration::agree() {
  try {
    return agree_with_others();
  } catch (const Error& error) {
    tell_of_misuse(error);
    throw;
  }
}

void Registration::tell_of_misuse(const Error& error) {
  if (error.kind() != ErrorKind::kUsage) return;
  notify_others(
      Error(error.kind(),
            fmt::format(
                "rank {} ({}) could not meet: {}", self().rank, process_name(), error.message())));
}

MeetingResult Registration::agree_with_others() {
  const Error end(
      ErrorKind::kPeerLost,
      fmt::format("rank {} ({}) ended before all ranks had met", self().rank, process_name()),
      {.rank = self().rank});
  store_->set_will(kResultKey, encode(MeetingResult(end)));
  MeetingResult result = claim_rank();
  if (result) {
    const MeetingResult first = propose_result(*store_, result);
    if (!first) return result;  // the others have met without this rank and need no notice
  } else {
    if (store_of_ == StoreOf::kPeal) leave_wills(whole_store_);
    arrive();
    result = await_result();
  }
  if (result) stay_for_others(*result);
  return result;
}

void Registration::hold() { note_held(claim_.token, whole_store_); }

bool Registration::is_one_host() { return !store_->try_get("several_hosts"); }

void Registration::say_no_shared_memory(const Error& why) {
  store_->compare_set(kNoSharedMemory,
                      "",
                      fmt::format("rank {} ({}): {}", self().rank, process_name(), why.message()));
}

std::optional<std::string> Registration::no_shared_memory() {
  return store_->try_get(kNoSharedMemory);
}

std::string Registration::job() { return store_->get("job", context_.deadline); }

Secret Registration::secret() {
  if (!context_.config.secret.empty()) return context_.config.secret;
  std::string made_up = store_->get("secret", context_.deadline);
  const Wiped wiped(made_up);
  if (made_up.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("rank 0 has a secret, but rank {} does not: give all ranks the same "
                            "PEAL_SECRET",
                            self().rank));
  }
  if (store_->add("secret_read", 1) == self().world_size) store_->erase("secret");
  return Secret(made_up);
}

std::shared_ptr<store::Store> Registration::part_of_session(Deadline deadline) {
  if (store_of_ == StoreOf::kPeal) return whole_store_;
  const std::string name = session_name(*store_, self().rank, claim_.token, deadline);
  return store::make_prefix_store(whole_store_, session_prefix(name));
}

std::shared_ptr<store::Store> Registration::store_of_groups() {
  auto part = part_of_session(context_.deadline);
  if (store_of_ == StoreOf::kOther) leave_wills(part);
  return part;
}

Identity Registration::identity() {
  Identity result = self();
  if (context_.launch.local_is_known || is_one_host()) return result;
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
  set_contact_will(*group_store(store, kWorld), self().rank, process_name());
  set_end_will(*store, self().rank, process_name());
}

/// The error for a rank that is already claimed: by another process, or by this process itself at
/// this meeting.
Error Registration::refusal(const Claim& first) {
  if (first.process == claim_.process) {
    const auto earlier = store_->try_get(kResultKey);
    const MeetingResult failure = earlier ? decode_result(*earlier) : std::nullopt;
    if (failure) return *failure;  // the process came back to a meeting that failed
    return Error(ErrorKind::kUsage,
                 fmt::format("rank {} is given twice: {} has already come to this meeting as this "
                             "rank; use its group, give each thread its own rank, and if the store "
                             "outlives a meeting, give each meeting its own keys "
                             "(make_prefix_store)",
                             self().rank,
                             process_name()));
  }
  return Error(ErrorKind::kUsage,
               fmt::format("rank {} is given twice: to {} and to {}; give each process its own "
                           "rank, and each job its own place to meet",
                           self().rank,
                           first.process_name,
                           process_name()));
}

/// Stores this rank's claim and world size. Returns an error if the stored values contradict them.
MeetingResult Registration::claim_rank() {
  const SizeClaim own{
      self().world_size, self().rank, claim_.process_name, context_.launch.ranks_per_node};
  const SizeClaim first_size =
      SizeClaim::decode(store_->compare_set("world_size", "", own.encode()));
  agreed_size_ = std::max(1, std::min(own.size, first_size.size));
  if (first_size.size != own.size) {
    return Error(ErrorKind::kUsage,
                 fmt::format("the ranks disagree on the world size: it is {} and {}{}",
                             own.text(),
                             first_size.text(),
                             nodes_text(own, first_size)));
  }
  const std::string key = key_of_rank(kClaim, self().rank);
  const std::string first = store_->compare_set(key, "", claim_.encode());
  if (first != claim_.encode()) return refusal(Claim::decode(first));
  if (self().rank == 0) {
    const std::string& job = context_.launch.job;
    store_->set("secret", context_.config.secret.empty() ? net::make_secret().text() : "");
    store_->set("job", job.empty() ? net::random_hex(16) : job);
  }
  if (store_->compare_set("host", "", claim_.host_id) != claim_.host_id) {
    store_->set("several_hosts", "");
  }
  return std::nullopt;
}

/// The last rank to arrive announces that all are there. All others leave a mark. A missing mark
/// names a rank that was stopped between its claim and here, even if it was the last to arrive.
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
  propose_result(*store_, std::nullopt);
}

MeetingResult Registration::await_result() {
  const Deadline deadline = context_.deadline;
  const auto ranks = all_ranks(self().world_size);
  std::string store_error;
  while (true) {
    const bool looks = context_.ended.are_noted() || context_.interrupt;
    const Deadline slice = looks ? deadline.within(look_every(ranks.size())) : deadline;
    try {
      return decode_result(store_->get(kResultKey, slice));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
      store_error = error.message();
    }
    if (deadline.passed()) break;
    let_interrupt_all();
    try {
      context_.ended.check(ranks, "joined the group");
    } catch (const Error& lost) {
      return propose_result(*store_, lost);
    }
  }
  constexpr Timeout kToAnswer{100};
  if (!store_->answers(Deadline::after(kToAnswer))) {
    throw Error(
        ErrorKind::kTimeout,
        fmt::format("the store in which the ranks meet does not answer any more: {}", store_error));
  }
  if (const auto result = store_->try_get(kResultKey)) return decode_result(*result);
  return propose_result(*store_, late_ranks_error(ranks));
}

Error Registration::late_ranks_error(std::span<const Rank> ranks) {
  const auto absent = absent_ranks(*store_, kClaim, ranks);
  if (!absent.empty()) {
    const std::string advice = absent_nodes_text(absent, context_.launch.ranks_per_node) +
                               std::string(kAdviceIfNotStarted);
    return with_refusals(
        missing_ranks_error(absent, ranks.size(), "did not join the group in time", advice));
  }
  return missing_ranks_error(absent_ranks(*store_, kReady, ranks),
                             ranks.size(),
                             "joined the group and was not ready in time",
                             kAdviceIfStuck);
}

/// An interrupted rank must notify the others itself: a given store outlives the meeting, so no
/// last will is published when this rank leaves.
void Registration::let_interrupt_all() {
  try {
    let_interrupt(context_.interrupt);
  } catch (const Interrupted& interrupted) {
    notify_others(interrupted);
    throw;
  }
}

void Registration::notify_others(const Interrupted& interrupted) {
  const Error cause = error_of(interrupted);
  ErrorDetails details = cause.details();
  details.rank = self().rank;
  details.cause = ErrorCause::kInterrupted;
  notify_others(Error(ErrorKind::kAborted,
                      fmt::format("rank {} ({}) was interrupted before all ranks had met: {}",
                                  self().rank,
                                  claim_.process_name,
                                  cause.message()),
                      std::move(details)));
}

/// Writes to the group's part of the store too. If all ranks have come by now, they read only that
/// part.
void Registration::notify_others(const Error& failure) {
  try {
    propose_result(*store_, failure);
    propose_result(*group_store(part_of_session(Deadline(Clock::now())), kWorld), failure);
  } catch (const Error&) {
    // The store does not accept it. The other ranks then fail at their deadline.
  }
}

/// Adds the rejected connections, since the missing ranks may have been rejected for another
/// secret.
Error Registration::with_refusals(const Error& absence) {
  const auto refused = whole_store_->try_get(store::kRefusedKey);
  if (!refused) return absence;
  return Error(
      absence.kind(), fmt::format("{}; {}", absence.message(), *refused), absence.details());
}

/// Keeps the store alive until the other ranks have read a bad result. Ranks that come after the
/// store is gone would wait for a meeting that no longer exists.
///   Rank 0 leaves last, if the others come within 5 s.
///   In a file, which the last rank to leave removes, no rank leaves before rank 0 has come.
///   After the loss of a rank the stay is short, because each rank must report it within a second.
void Registration::stay_for_others(const Error& result) {
  try {
    const bool stays = self().rank == 0 || !store_->try_get(key_of_rank(kClaim, 0));
    const Timeout limit =
        stays ? (is_loss(result.kind()) ? kStayAfterLoss : Timeout(5000)) : Timeout(0);
    stay_until_all_have_read(*store_, agreed_size_, context_.deadline.within(limit));
  } catch (const Error&) {
    // Ranks that come later are not notified. The caller throws the result in any case.
  }
}

}  // namespace peal::rendezvous
