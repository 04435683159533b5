// One rank's part in a meeting: it claims its rank in the shared store and agrees with the other
// ranks. Used by `meet`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"
#include "peal/rendezvous/meet_context.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// The part of the store in which the ranks meet.
inline constexpr const char* kMeetingPrefix = "meeting";

/// This process, for messages: "process 7 on b".
std::string own_process();

/// The entry that a process stores for its rank. Every claim is unique: two processes never store
/// the same claim, and one process stores different claims at two meetings.
struct Claim {
  std::string token;
  std::string process;  // a token too, because processes in containers may share a name
  std::string host_id;
  std::string process_name;  // for messages

  std::string encode() const;
  static Claim decode(std::string_view bytes);
};

/// Which program serves the store in which the ranks meet.
enum class StoreOf : unsigned char {
  kPeal,   // rank 0: each rank has proved that it knows the secret, or belongs to this user
  kOther,  // the application: other programs may write to it, so each meeting has its own session
};

/// Threads: one at a time. Errors: of the store.
class Registration final {
 public:
  /// `context` must outlive this object.
  Registration(std::shared_ptr<store::Store> store,
               const MeetContext& context,
               StoreOf store_of = StoreOf::kPeal);

  /// This process's part in an earlier, successful meeting in this store. The values are in
  /// ascending order: for a process with several ranks, the highest value counts.
  enum class Earlier : unsigned char {
    kNone,  // it took no part: an earlier meeting, if any, belongs to other processes
    kLeft,  // it took part and has released the store; others have not
    kHeld,  // it took part and has not released the store
  };
  Earlier earlier();

  /// Returns when all ranks are there and agree, or returns the error of the first rank that
  /// objects. Throws Interrupted after it has notified the other ranks.
  MeetingResult agree();

  /// Records that this process takes part in the meeting until it drops its last reference to the
  /// store.
  void hold();

  /// Passes a usage error that makes this rank leave on to the other ranks, if the store accepts
  /// it. Other kinds of errors are ignored.
  void tell_of_misuse(const Error& error);

  const std::string& process_name() const { return claim_.process_name; }
  bool is_one_host();

  /// A rank that cannot make shared memory calls this before `agree`.
  void say_no_shared_memory(const Error& why);
  /// The first rank that cannot make shared memory, and why. To be called after `agree`.
  std::optional<std::string> no_shared_memory();

  /// The job's name: from the launcher, or else made by rank 0.
  std::string job();

  /// The job's secret: the user's, or else the secret that rank 0 has made. The last rank to read a
  /// made secret deletes it from the store. Errors: usage (rank 0 has a secret, this rank does
  /// not).
  Secret secret();

  /// The store in which the ranks publish their addresses: the whole store, or this meeting's part.
  std::shared_ptr<store::Store> store_of_groups();

  /// To be called after `agree`: the local rank and size are known only then, unless the launcher
  /// gave them.
  Identity identity();

 private:
  const Identity& self() const { return context_.launch.identity; }
  std::optional<Claim> claim_of(Rank rank);
  MeetingResult claim_rank();
  Error refusal(const Claim& first);
  MeetingResult agree_with_others();
  void leave_wills(const std::shared_ptr<store::Store>& store);
  std::shared_ptr<store::Store> part_of_session(Deadline deadline);
  void arrive();
  MeetingResult await_result();
  Error late_ranks_error(std::span<const Rank> ranks);
  void let_interrupt_all();
  void notify_others(const Interrupted& interrupted);
  void notify_others(const Error& failure);
  Error with_refusals(const Error& absence);
  void stay_for_others(const Error& result);

  std::shared_ptr<store::Store> whole_store_;
  std::unique_ptr<store::Store> store_;  // of the meeting
  const MeetContext& context_;
  StoreOf store_of_;
  int agreed_size_ = 1;  // if the ranks disagree: the smaller of the sizes
  Claim claim_;
};

}  // namespace peal::rendezvous
