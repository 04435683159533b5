// A thread for what is to be done a little later, and one after the other. The native backend tells
// by it who waits that messages have ended: they end while the mailbox is locked.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/base/per_process.h"
#include "peal/base/thread.h"

namespace peal {

/// Threads: any number at once.
class TaskThread {
 public:
  TaskThread() = default;
  /// In a forked child nothing is done: the thread is the parent's, and may have held the lock.
  ~TaskThread() {
    if (owner_.is_current()) {
      close();
    } else {
      leave_to_parent(std::move(queue_));
    }
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// So that `post` finds a thread; does nothing a second time, or after `close`.
  /// Errors: resource.
  void start() {
    queue_->with([this](Queue& queue) {
      if (queue.closed || queue.thread.joinable()) return;
      queue.thread = start_thread([this] { work(); });
    });
  }

  /// The tasks, which throw nothing, are done one after the other, in this order. After `close`,
  /// and where there was no `start`, on this very thread.
  void post(std::function<void()> task) {
    const bool taken = queue_->update([&](Queue& queue) {
      if (queue.closed || !queue.thread.joinable()) return false;
      queue.tasks.push_back(std::move(task));
      return true;
    });
    if (!taken) task();
  }

  /// Returns when all is done that was posted before; a second time at once. Not to be called by a
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

  /// Nothing when all is done and there will be no more.
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
