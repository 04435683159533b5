// The launcher's control of a running job: the stages of its end, the signals to the launcher, and
// the loss of the guard. Owned by launcher.cpp and by elastic/driver.cpp.
#pragma once

#include <poll.h>

#include <functional>
#include <set>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/guard.h"
#include "peal/launch/process_tree.h"
#include "peal/launch/signals.h"

namespace peal::launch {

/// How long the other processes have, once a process has failed, to fail by themselves and to print
/// why. Then the launcher ends them. The process that fails first is not always the cause. Must be
/// longer than ~ProcessGroup delays an exception (a second, and 200 ms for its last messages),
/// since a rank prints its error only after that. Costs nothing unless a process lingers.
inline constexpr Timeout kOwnEnds{3000};
/// How long the outputs may stay open and silent after all processes have ended.
inline constexpr Timeout kLastOutput{1000};

/// The stages of a job. They only go forward.
enum class Stage : unsigned char {
  kRunning,
  kFailing,    // the job has failed, and other processes may be about to fail
  kStopping,   // the launcher ends the processes
  kGone,       // all processes have ended; their output remains to be shown
  kAbandoned,  // as kGone, but the remaining output is dropped
};

/// Threads: one. Forks, like the Guard.
class Supervisor final {
 public:
  /// What came from outside the job.
  struct Intervention {
    int signal = 0;           // the signal that ended the job; 0: none
    int cut_short = 0;        // the signal that cut the grace short; 0: none
    bool guard_lost = false;  // the guard was killed, and the processes with it
    int survivors = 0;        // processes that SIGKILL did not end
  };

  /// Blocks the signals that it reads, starts adopting orphans, and forks the guard. Sets
  /// `duty.mask`. Errors: resource.
  explicit Supervisor(GuardDuty duty);
  Supervisor(const Supervisor&) = delete;

  Guard& guard() { return guard_; }
  Stage stage() const { return stage_; }
  const Intervention& intervention() const { return intervention_; }

  /// Adds the kEntries descriptors to poll.
  void add_to(std::vector<pollfd>& entries) const;
  static constexpr std::size_t kEntries = 2;
  /// Handles signals, then events; a process that was ended by a signal to the whole job has not
  /// failed. Also begins to stop the processes if their time to fail by themselves is over.
  /// `entries`: those of add_to after poll. `handler` gets all events but kGone.
  void handle(std::span<const pollfd> entries,
              const std::function<void(const GuardEvent&)>& handler);

  /// kRunning becomes kFailing, for kOwnEnds.
  void fail();
  /// Ends the processes by `signal`, and kills those that remain after the grace.
  void stop(int signal, SignalOrigin origin);
  /// The guard has begun to do so by itself.
  void note_stop();
  /// The last output did not come in time. After a signal the reader of the output is stuck.
  void give_up_output();

  /// How long the processes have to fail by themselves, for poll(2).
  int milliseconds_to_fail() const {
    return static_cast<int>(Deadline(stopping_from_).left().count());
  }
  /// Whether the grace is over, so that the guard kills the processes.
  bool is_killing(TimePoint now) const { return now >= killing_from_; }

 private:
  void handle_signals();
  void end_by_signal(SignalReader::Taken taken);
  void kill_at_once(int signal);
  void guard_is_lost();

  const Timeout grace_;
  Stage stage_ = Stage::kRunning;
  Intervention intervention_;
  TimePoint stopping_from_ = TimePoint::max();  // then processes that have not failed are ended
  TimePoint killing_from_ = TimePoint::max();
  const std::set<pid_t> children_before_;  // of the program, with their descendants
  const OrphanAdoption adoption_;
  SignalReader signals_;
  Guard guard_;
};

}  // namespace peal::launch
