// The thread that runs rounds for asynchronous operations, while no thread of the program waits
// for them. NamedOperations has one.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"

namespace peal::named {

/// Threads: any number at once.
class BackgroundThread final {
 public:
  struct Work {
    std::function<void()> run;
    /// Whether `run` has left something to do.
    std::function<bool()> is_left;
  };
  /// Starts a thread. Errors: resource.
  using Starter = std::function<std::thread(std::function<void()>)>;

  explicit BackgroundThread(Work work);
  BackgroundThread(Work work, Starter starter);
  /// Calls stop().
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Starts the thread, unless it runs. After an error, the next call tries again.
  /// Errors: resource.
  void start();
  /// Makes the thread call the work soon. Starts the thread first; errors as for start().
  /// Cost: a load, if the thread has work already.
  void wake();
  /// Called by the work: waits until the deadline. Returns whether stop() was called.
  bool sleep(Deadline until);
  /// Waits until the work has returned.
  void stop();

 private:
  struct State {
    bool has_work = false;
    bool is_stopped = false;
    std::thread thread;
  };

  void loop();

  const Work work_;
  const Starter starter_;
  Guarded<State> state_;
  std::atomic<bool> has_work_ = false;
};

}  // namespace peal::named
