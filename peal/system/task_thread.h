// A thread that runs tasks one after the other. The native backend uses it for callbacks, because
// messages end while the mailbox is locked, and for notices of lost peers. The Python package uses
// it for sums of sparse tensors. The stream of `peal bench` sends on it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/system/per_process.h"
#include "peal/system/thread.h"

namespace peal {

/// Threads: any number at once.
class TaskThread {
 public:
  TaskThread() = default;
  /// In a forked child does nothing: the thread is the parent's, and may have held the lock.
  ~TaskThread() {
    if (owner_.is_current()) {
      close();
    } else {
      leave_to_parent(std::move(queue_));
    }
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Starts the thread, for `post`. Does nothing on a second call, or after `close`.
  /// Errors: resource.
  void start() {
    queue_->with([this](Queue& queue) {
      if (queue.closed || queue.thread.joinable()) return;
      queue.thread = start_thread([this] { work(); });
    });
  }

  /// Runs the task on the thread, in the order of the calls. The task must not throw. Without
  /// `start` and after `close`, runs the task on the calling thread.
  void post(std::function<void()> task) {
    const bool taken = queue_->update([&](Queue& queue) {
      if (queue.closed || !queue.thread.joinable()) return false;
      queue.tasks.push_back(std::move(task));
      return true;
    });
    if (!taken) task();
  }

  /// Returns when all posted tasks have run; a second call returns at once. Must not be called by a
  /// task.
  void close() {
    std::thread thread = queue_->update([](Queue& queue) {
      queue.closed = true;
      return std::move(queue.thread);
    });
    if (thread.joinable()) thread.join();
  }

 private:
  struct Queue {
    std::deque<std::function<void()>> tasks;
    bool closed = false;
    std::thread thread;
  };

  void work() {
    while (const std::function<void()> task = next()) task();
  }

  /// The next task; empty when all tasks have run and the queue is closed.
  std::function<void()> next() {
    std::function<void()> task;
    const auto ready = [](const Queue& queue) { return queue.closed || !queue.tasks.empty(); };
    queue_->wait(Deadline(TimePoint::max()), ready, [&](Queue& queue) {
      if (queue.tasks.empty()) return;
      task = std::move(queue.tasks.front());
      queue.tasks.pop_front();
    });
    return task;
  }

  const OwnerProcess owner_;
  std::shared_ptr<Guarded<Queue>> queue_ = std::make_shared<Guarded<Queue>>();
};

}  // namespace peal
