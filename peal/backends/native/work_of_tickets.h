// The group's Work over the engine's tickets.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/group/work.h"
#include "peal/mail/ticket.h"
#include "peal/system/per_process.h"
#include "peal/system/task_thread.h"

namespace peal::native {

/// Ends when all of its tickets have ended, with the first failure among them.
class WorkOfTickets : public Work, public std::enable_shared_from_this<WorkOfTickets> {
 public:
  void wait(Timeout timeout) override {
    if (!owner_.is_current() && !is_completed()) throw of_parent();
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    for (std::size_t i = 0; i < tickets(); ++i) {
      if (!ticket(i).wait(deadline)) {
        throw Error(ErrorKind::kTimeout, ticket(i).what() + " has not ended yet and continues");
      }
    }
    if (const auto failure = exception()) std::rethrow_exception(failure);
  }

  bool is_completed() const override {
    for (std::size_t i = 0; i < tickets(); ++i) {
      if (!ticket(i).ended()) return false;
    }
    return true;
  }

  void when_completed(std::function<void()> then) override {
    if (is_completed()) return then();
    if (!owner_.is_current()) throw of_parent();
    const std::shared_ptr<TaskThread> afterwards = callback_thread();
    if (afterwards) afterwards->start();  // now, because starting it may fail
    struct Open {
      Open(std::size_t n, std::function<void()> t) : left(n), then(std::move(t)) {}
      std::atomic<std::size_t> left;
      std::function<void()> then;
    };
    const auto open = std::make_shared<Open>(tickets(), std::move(then));
    const auto self = shared_from_this();  // the callback may release the last other owner
    for (std::size_t i = 0; i < tickets(); ++i) {
      ticket(i).when_ended([open, afterwards] {
        if (open->left.fetch_sub(1) > 1) return;
        auto last = std::move(open->then);
        if (afterwards) return afterwards->post(std::move(last));
        last();
      });
    }
  }

  std::exception_ptr exception() const override {
    for (std::size_t i = 0; i < tickets(); ++i) {
      if (auto failure = ticket(i).exception()) return failure;
    }
    return nullptr;
  }

  Rank source() const override { return tickets() == 0 ? kAnySource : ticket(0).source(); }

 private:
  virtual std::size_t tickets() const = 0;
  virtual mail::Ticket& ticket(std::size_t index) const = 0;
  /// The thread that runs the callbacks; null if a ticket's own thread may run them.
  virtual std::shared_ptr<TaskThread> callback_thread() const { return nullptr; }

  Error of_parent() const {
    return Error(ErrorKind::kUsage,
                 ticket(0).what() +
                     " was started by the parent process and ends there: "
                     "wait for it before you fork");
  }

  const OwnerProcess owner_;
};

/// Of several operations, or of messages.
class TicketsWork final : public WorkOfTickets {
 public:
  explicit TicketsWork(std::vector<mail::TicketPtr> tickets,
                       std::shared_ptr<TaskThread> callback_thread = nullptr)
      : tickets_(std::move(tickets)), callback_thread_(std::move(callback_thread)) {}

 private:
  std::size_t tickets() const override { return tickets_.size(); }
  mail::Ticket& ticket(std::size_t index) const override { return *tickets_[index]; }
  std::shared_ptr<TaskThread> callback_thread() const override { return callback_thread_; }

  std::vector<mail::TicketPtr> tickets_;
  std::shared_ptr<TaskThread> callback_thread_;
};

}  // namespace peal::native
