// Runs collectives one after the other, in the order of their calls. A blocking collective runs on
// its caller's thread if no other is before it; all others run on a worker thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "peal/backends/native/backoff.h"
#include "peal/backends/native/collective_record.h"
#include "peal/backends/native/group_error.h"
#include "peal/backends/native/interruptible.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/backends/native/progress_reports.h"
#include "peal/backends/native/quick_lock.h"
#include "peal/backends/native/started_collective.h"
#include "peal/backends/native/task.h"
#include "peal/base/fifo.h"
#include "peal/base/guarded.h"
#include "peal/engine/collective.h"
#include "peal/mail/ticket.h"

namespace peal::native {

/// Threads: any number at once.
class CollectiveLoop {
 public:
  struct Parts {
    QuickLock& quick_lock;  // outlives the loop and all threads that try to enter
    std::string group;      // its name, for errors
    Rank self = 0;
    int ranks = 0;
    transport::Transport& transport;
    engine::Planner& planner;
    GroupError& group_error;
    const observe::GroupRecorder& recorder;
    const LostPeers& lost_peers;
    Bytes stage;
    Cores cores = Cores::kOwn;
    int cpus = 1;  // how many of the host's CPUs this rank may keep busy
    ProgressReports& progress_reports;
    Interrupt interrupt;
    /// How a peer has left the group; nothing while it has not said so.
    std::function<std::optional<Departure>(Rank)> departure;
    /// Tells the given ranks which operation this rank is in, because it waits for them.
    std::function<void(std::span<const Rank>, const engine::ProgressReport&)> send_progress_report;
  };

  explicit CollectiveLoop(Parts parts);
  ~CollectiveLoop();

  /// Threads: any; operations run one after another.
  /// Errors: those of the operation; a bug if no schedule can be planned.
  void run(const Request& request, Timeout timeout);
  /// For a thread that has entered the quick lock. Afterwards the thread leaves the quick lock, or
  /// calls `end_turn` if the quick lock was closed meanwhile.
  void run_inside(const Request& request, Timeout timeout) {
    carry_out(request, {.timeout = timeout, .interrupt = &parts_.interrupt}, Backoff(parts_.cores));
  }
  void end_turn();

  /// Runs the operation on the worker thread, after the operations that were started before. Errors
  /// of the operation are the result's.
  StartedCollective::Ptr start(const Request& request, Timeout timeout);

  /// Compares new progress reports if no collective is running; a running collective does so
  /// itself.
  void check_progress_reports();

  /// Prevents new operations and waits until none is running. Returns false if the deadline passed
  /// before.
  bool drain(Deadline deadline);

  /// Waits until running operations and the worker have ended. Call after the group error is set,
  /// so that they end soon.
  void stop();

 private:
  using JobPtr = StartedCollective::Ptr;
  struct Queue {
    Fifo<JobPtr> jobs;
    bool busy = false;      // a thread has the turn
    bool draining = false;  // no operation begins any more, and the quick lock stays closed
    bool stopping = false;  // no worker is started any more, and the quick lock stays closed
    std::vector<std::thread> workers;  // one, or more if workers are notifying watchers
    std::size_t away = 0;              // workers that are notifying watchers of the end of a job
  };

  /// When an operation must have ended, unless it is interrupted. Reading the clock costs as much
  /// as the steps of a small operation, so an operation that ends at once never reads it.
  struct Due {
    Timeout timeout;
    std::optional<Deadline> known = {};
    const Interrupt* interrupt = nullptr;  // set if the operation runs on its caller's thread
    std::optional<Deadline> next_interrupt = {};  // the time of its next call while data moves

    Deadline at() {
      if (!known) known = Deadline::after(timeout);
      return *known;
    }
  };

  bool take_turn();
  /// From here on turns are taken and ended under the lock, until no operation is running.
  void close_quick_lock(Queue& queue);
  void open_quick_lock(const Queue& queue);
  void work();
  void end(StartedCollective& job, const std::optional<Error>& failure);
  void tell_watchers(mail::Ticket& ticket);
  /// Ensures that a worker runs the jobs. Errors: resource.
  void manage_worker(Queue& queue);
  /// Takes the next job and the turn; null if the loop stops and no jobs are left.
  JobPtr next_job();

  /// Runs one collective on this thread. Throws its error, which is then the group error.
  void carry_out(const Request& request, Due due, Backoff backoff);
  /// Returns when the collective is done. Throws its error.
  void drive(Due& due, Backoff& backoff, CollectiveRecord& record);
  void record_missing_rank(CollectiveRecord& record) const;
  void sleep(Deadline deadline);
  /// For a collective that has been blocked for a while: throws if it can no longer succeed.
  void look_around();
  /// Throws Error(mismatch) if a peer is in another operation.
  void compare_progress_reports();
  void send_progress_report();
  /// Throws if this collective, or one that waits behind it, has passed its deadline.
  void check_deadlines(Due& due);
  /// Calls the interrupt once in kInterruptEvery.
  void interrupt_now_and_then(Due& due);
  std::string current() const;
  Error closed(Rank peer);
  Error never_begun(const mail::Ticket& late) const;
  Error timed_out(Timeout timeout) const;
  /// Which ranks the operation waits for, and which others do not run.
  std::string missing_ranks_text() const;
  ErrorDetails details_of_missing() const;

  Parts parts_;
  // Used by the thread with the turn.
  TaskMaker maker_;
  engine::Collective collective_;
  // when to send the next progress report
  TimePoint tell_from_ = TimePoint::max();

  Guarded<Queue> queue_;
};

}  // namespace peal::native
