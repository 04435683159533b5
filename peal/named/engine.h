// The threads of NamedOperations: which of them runs the rounds, and what happens to operations
// when the group ends.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>

#include "peal/base/guarded.h"
#include "peal/named/agreement.h"
#include "peal/named/background_thread.h"
#include "peal/named/named_operations.h"
#include "peal/named/pending_operations.h"
#include "peal/named/stall_watch.h"
#include "peal/system/per_process.h"

namespace peal::named {

/// One thread at a time has the turn: it runs the rounds. A thread that waits for an operation
/// takes the turn if it is free; the background thread takes it for operations that no thread waits
/// for.
class NamedOperations::Engine final {
 public:
  Engine(ProcessGroupPtr group, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ProcessGroup& group() const { return *group_; }
  void submit(std::span<const OperationPtr> operations, Waits waits);
  void wait(const Operation& operation);
  bool poll(const Operation& operation);
  Rank join();
  std::uint64_t joins() const;
  std::exception_ptr ended_by() const;

 private:
  struct State {
    explicit State(std::shared_ptr<FlightNotes> notes) : pending(std::move(notes)) {}

    bool has_work() const { return !pending.empty() && !ended_by && !is_closed; }
    void throw_if_ended() const {
      if (ended_by) throw Error(*ended_by);
    }

    PendingOperations pending;
    bool is_driven = false;  // a thread has the turn
    bool is_closed = false;
    std::optional<Error> ended_by;
    /// An exception of the user that the background thread has caught. The next thread of the
    /// program that waits throws it.
    std::exception_ptr interruption;
    std::uint64_t joins = 0;  // that have ended
    Rank last_joined = -1;    // in the last of them
  };

  void check_process() const;
  void start_threads(Waits waits);

  // ---- the turn
  template <class Done>
  void wait_until(Done&& done);
  template <class Done>
  void drive_until(Done&& done);
  void end_turn();
  void pause(TimePoint idle_since);
  bool wait_patiently();
  void work();

  // ---- a round
  bool run_round();
  void show_arrivals();
  void carry_out(const Decision& decision);
  void run(const Decision& decision);
  void fail(const Decision& decision);
  void complete(std::span<const Request> requests, const std::exception_ptr& error);

  // ---- the end
  void end_with(const std::exception_ptr& error);
  void fail_all();
  void throw_interruption();

  ProcessGroupPtr group_;
  Options options_;
  const OwnerProcess owner_;
  const bool is_eager_;  // the background thread starts at once
  mutable Guarded<State> state_;
  Agreement agreement_;        // used by the thread with the turn
  TimePoint background_turn_;  // the last one; used by the background thread
  BackgroundThread background_;
  std::optional<StallWatch> stall_watch_;
};

}  // namespace peal::named
