// The launcher's control of a running job: the stages of its end, the signals to the launcher, and
// the loss of the guard. Owned by launcher.cpp and by elastic/driver.cpp.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/local_guard.h"
#include "peal/launch/process_tree.h"
#include "peal/launch/report.h"
#include "peal/launch/signals.h"
#include "peal/system/stop_signals.h"

namespace peal::launch {

/// After the first failure, the other processes have this time to fail by themselves and to print
/// why, because the process that fails first is not always the cause. Then the launcher ends them.
/// Must be longer than ~ProcessGroup delays an exception (a second, and 200 ms for its last
/// messages), since a rank prints its error only after that. Costs time only if a process lingers.
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
  /// Events from outside the job that ended it.
  struct Intervention {
    int signal = 0;           // the signal that ended the job; 0: none
    int late_signal = 0;      // a signal that came when the job was ending by itself; 0: none
    int cut_short = 0;        // the signal that cut the grace short; 0: none
    bool guard_lost = false;  // the guard was killed, and the processes with it
    int survivors = 0;        // processes that SIGKILL did not end
  };

  /// Starts adopting orphans, and makes the guard. Reads `signals` while it lives. Errors: of
  /// `make_guard`.
  Supervisor(SignalReader& signals, Timeout grace, const GuardMaker& make_guard);
  /// For the processes of this machine. Sets `duty.mask`. Errors: resource.
  Supervisor(SignalReader& signals, GuardDuty duty);
  Supervisor(const Supervisor&) = delete;

  Guard& guard() { return *guard_; }
  Stage stage() const { return stage_; }
  const Intervention& intervention() const { return intervention_; }

  /// Adds the kEntries descriptors to poll.
  void add_to(std::vector<pollfd>& entries) const;
  static constexpr std::size_t kEntries = 2;
  /// Handles signals, and then events: if a signal to the whole job ended a process, the process
  /// has not failed. Also begins to stop the processes when their time to fail by themselves is
  /// over. `entries`: those of add_to after poll. `handler` gets all events but kGone and
  /// kAfterEnd.
  void handle(std::span<const pollfd> entries,
              const std::function<void(const GuardEvent&)>& handler);

  /// The stage kRunning becomes kFailing, and after kOwnEnds kStopping.
  void fail();
  /// Ends the processes by `signal`, and kills those that remain after the grace.
  void stop(int signal, SignalOrigin origin);
  /// The same at a request from outside, so that ranks can save: see Guard::ask_to_stop.
  void ask_to_stop(int signal, SignalOrigin origin);
  /// Drops the remaining output, because it did not arrive in time. After a signal, this means that
  /// the reader of the output is stuck.
  void give_up_output();

  /// How long the processes have to fail by themselves, for poll(2).
  int milliseconds_to_fail() const {
    return static_cast<int>(Deadline(stopping_from_).left().count());
  }
  /// Whether the grace is over, so that the guard kills the processes.
  bool is_killing(TimePoint now) const { return now >= killing_from_; }
  /// The launcher's part in the end of a process that ends now. `status` as waitpid(2) gives it.
  EndedBy ender_of(int status, TimePoint now) const;

 private:
  void note_stop();
  void handle_signals();
  void end_by_signal(SignalReader::Taken taken);
  void kill_at_once(int signal);
  void guard_is_lost();
  void await_after_ends() const;

  const Timeout grace_;
  Stage stage_ = Stage::kRunning;
  Intervention intervention_;
  TimePoint stopping_from_ = TimePoint::max();  // the end of kFailing
  TimePoint killing_from_ = TimePoint::max();
  std::optional<StopSignal> last_request_;
  std::set<pid_t> after_ends_;             // processes of RankCommand::after_end
  const std::set<pid_t> children_before_;  // of the program, with their descendants
  const OrphanAdoption adoption_;
  SignalReader& signals_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace peal::launch
