// One rank's part of a meeting, in the store that the ranks share. Used by `meet`.
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
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/rendezvous/verdict.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// This process, for messages: "process 7 on b".
std::string own_process();

/// What a process lays down for its rank. No two processes' claims are the same, nor a process's at
/// two meetings.
struct Claim {
  std::string token;
  std::string process;  // a token too: in containers, several may be called the same
  std::string host_id;
  std::string who;  // for messages

  std::string encode() const;
  static Claim decode(std::string_view bytes);
};

/// Which program serves the store in which the ranks meet.
enum class StoreOf : unsigned char {
  kPeal,   // rank 0: each rank has proved that it knows the secret, or is this user's process
  kOther,  // the application's: others may write to it, so that a meeting has a session of its own
};

/// Threads: one at a time. Errors: of the store.
class Registration final {
 public:
  /// `secret`: the job's, empty where the user gave none.
  Registration(std::shared_ptr<store::Store> store,
               Launch launch,
               EndedRanks ended,
               Secret secret = {},
               StoreOf store_of = StoreOf::kPeal);

  /// What this process has had to do with a meeting that went well in this store; the most of it
  /// last.
  enum class Earlier : unsigned char {
    kNone,  // nothing: if there was one, it is others'
    kLeft,  // it was there, and has let go of it; others have not
    kHeld,  // it has not let go of it
  };
  Earlier earlier();

  /// Returns when all ranks are there and agree, or what the first to object said. Throws
  /// Interrupted, when the others have been told.
  Verdict agree(Deadline deadline, const Interrupt& interrupt);

  /// What was agreed on is this process's until the last reference to the store is gone.
  void hold();

  /// Tells the others of a usage error that makes this rank leave, as far as the store lets it.
  void tell_of_misuse(const Error& error);

  const std::string& who() const { return claim_.who; }
  bool is_one_host();

  /// To be called before `agree` by a rank that cannot make shared memory.
  void say_no_shared_memory(const Error& why);
  /// The first rank that said so and why; to be called after `agree`.
  std::optional<std::string> no_shared_memory();

  /// The job's name: the launcher's, or what rank 0 made up.
  std::string job(Deadline deadline);

  /// The job's secret: the user's, or the secret that rank 0 has made up. The last rank to read
  /// that deletes it from the store. Errors: usage (rank 0 has a secret and this rank has none).
  Secret secret(Deadline deadline);

  /// Where the ranks say where they listen: the store, or this meeting's part of it.
  std::shared_ptr<store::Store> store_of_groups(Deadline deadline);

  /// Where ranks are is known only now, unless the launcher said it.
  Identity identity();

 private:
  const Identity& self() const { return launch_.identity; }
  std::optional<Claim> claim_of(Rank rank);
  Verdict object();
  Error refusal(const Claim& first);
  Verdict agree_with_others(Deadline deadline, const Interrupt& interrupt);
  void leave_wills(const std::shared_ptr<store::Store>& store);
  std::shared_ptr<store::Store> part_of_session(Deadline deadline);
  void arrive();
  Verdict await_verdict(Deadline deadline, const Interrupt& interrupt);
  Error who_is_late(std::span<const Rank> ranks);
  void let_interrupt_all(const Interrupt& interrupt);
  void tell_of(const Interrupted& interrupted);
  void tell_of(const Error& failure);
  Error with_refusals(const Error& absence);
  void stay_for_others(const Error& verdict, Deadline deadline);

  std::shared_ptr<store::Store> whole_store_;
  std::unique_ptr<store::Store> store_;  // of the meeting
  Launch launch_;
  EndedRanks ended_;
  Secret secret_;
  StoreOf store_of_;
  int agreed_size_ = 1;  // the smaller where ranks disagree
  Claim claim_;
};

}  // namespace peal::rendezvous
