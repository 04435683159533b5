// Drives collectives, one after the other in the order in which they are asked for: a blocking one
// on the thread of whoever calls it if nothing is before it, all others on a worker thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "peal/backends/native/collective_record.h"
#include "peal/backends/native/gate.h"
#include "peal/backends/native/interruptible.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/backends/native/owned_request.h"
#include "peal/backends/native/patience.h"
#include "peal/backends/native/standings.h"
#include "peal/backends/native/task.h"
#include "peal/base/guarded.h"
#include "peal/engine/collective.h"
#include "peal/engine/ticket.h"
#include "peal/engine/verdict.h"

namespace peal::native {

/// Threads: any number at once.
class CollectiveLoop {
 public:
  struct Parts {
    Gate& gate;         // outlives the loop, as do those who try to enter
    std::string group;  // its name, for errors
    Rank self = 0;
    int ranks = 0;
    transport::Transport& transport;
    engine::Planner& planner;
    engine::Verdict& verdict;
    const observe::GroupRecorder& recorder;
    const LostPeers& lost_peers;
    Bytes stage;
    Cores cores = Cores::kOwn;
    int cpus = 1;  // of the host's, those that this rank may keep busy
    Standings& standings;
    Interrupt interrupt;
    /// How a peer has left; nothing while it has not said farewell.
    std::function<std::optional<Departure>(Rank)> departure;
    /// Tells ranks where this one stands, that waits for them.
    std::function<void(std::span<const Rank>, const engine::Standing&)> tell_standing;
  };

  explicit CollectiveLoop(Parts parts);
  ~CollectiveLoop();

  void run(const Request& request, Timeout timeout);
  /// By who has entered the gate, and leaves it afterwards; or ends the turn where it was closed
  /// meanwhile.
  void run_inside(const Request& request, Timeout timeout) {
    carry_out(
        request, {.timeout = timeout, .interrupt = &parts_.interrupt}, Patience(parts_.cores));
  }
  void end_turn();

  engine::TicketPtr start(const Request& request, Timeout timeout);

  /// Something has come to the standings, which nobody looks at if no collective is under way.
  void look_at_standings();

  /// Lets no operation begin any more, and waits until none is under way; returns whether that was
  /// before the deadline.
  bool drain(Deadline deadline);

  /// Waits for the end of what is under way, and of the worker. The verdict is reached, so that it
  /// is near.
  void stop();

 private:
  struct Job {
    OwnedRequest request;
    engine::TicketPtr ticket;
  };
  struct Queue {
    std::deque<Job> jobs;
    bool busy = false;                 // somebody has the turn
    bool draining = false;             // no operation begins any more, and the gate stays closed
    bool stopping = false;             // no worker is started any more, and the gate stays closed
    std::vector<std::thread> workers;  // one, unless those that were there were away
    std::size_t away = 0;              // workers that tell of the end of a job
  };

  /// When an operation must have ended, unless it is interrupted. Asking the time costs as much as
  /// a small operation's steps, so one that is done at once never does.
  struct Due {
    Timeout timeout;
    std::optional<Deadline> known = {};
    const Interrupt* interrupt = nullptr;         // where somebody's own call carries it out
    std::optional<Deadline> next_interrupt = {};  // when it is called next while data moves

    Deadline at() {
      if (!known) known = Deadline::after(timeout);
      return *known;
    }
  };

  bool take_turn();
  /// From here on turns are taken and ended under the lock, until nothing is under way.
  void close_gate(Queue& queue);
  void open_gate(const Queue& queue);
  void work();
  void end(const Job& job, const std::optional<Error>& failure);
  void tell_watchers(engine::Ticket& ticket);
  /// Sees that somebody carries out jobs. Errors: resource.
  void see_to_worker(Queue& queue);
  /// The next job, with the turn; nothing when the loop stops and all have been taken.
  std::optional<Job> next_job();

  /// Carries one out on this thread. Throws what it ended with, which is then the group's verdict.
  void carry_out(const Request& request, Due due, Patience patience);
  /// Runs the operation to its end. Throws the operation's error.
  void drive(Due& due, Patience& patience, CollectiveRecord& record);
  void record_missing_rank(CollectiveRecord& record) const;
  void sleep(Deadline deadline);
  /// For one that has been blocked for a while: is there still hope?
  void look_around();
  /// Throws Error(mismatch) where a peer stands elsewhere.
  void compare_standings();
  void tell_standing();
  /// Throws if it, or one that waits behind it, has had its time.
  void check_deadlines(Due& due);
  /// Calls the interrupt once in kInterruptEvery.
  void interrupt_now_and_then(Due& due);
  Error closed(Rank peer);
  Error never_begun(const engine::Ticket& late) const;
  Error timed_out(Timeout timeout) const;
  /// Whom the operation waits for, and who else does not run.
  std::string who_is_missing() const;

  Parts parts_;
  // Of whoever has the turn:
  TaskMaker maker_;
  engine::Collective collective_;
  TimePoint tell_from_ = TimePoint::max();  // when it next tells where it stands

  Guarded<Queue> queue_;
};

}  // namespace peal::native
