// The group's Work over the engine's tickets.
#pragma once

#include <algorithm>
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
class TicketsWork final : public Work {
 public:
  /// `afterwards`: the thread that runs the callbacks; null if a ticket's own thread may run them.
  explicit TicketsWork(std::vector<mail::TicketPtr> tickets,
                       std::shared_ptr<TaskThread> afterwards = nullptr)
      : tickets_(std::move(tickets)), afterwards_(std::move(afterwards)) {}

  void wait(Timeout timeout) override {
    if (!owner_.is_current() && !is_completed()) throw of_parent();
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    for (const auto& ticket : tickets_) {
      if (!ticket->wait(deadline)) {
        throw Error(ErrorKind::kTimeout, ticket->what() + " has not ended yet and continues");
      }
    }
    if (const auto failure = exception()) std::rethrow_exception(failure);
  }

  bool is_completed() const override {
    return std::all_of(tickets_.begin(), tickets_.end(), [](const auto& t) { return t->ended(); });
  }

  /// The callback may destroy this object.
  void when_completed(std::function<void()> then) override {
    if (is_completed()) return then();
    if (!owner_.is_current()) throw of_parent();
    if (afterwards_) afterwards_->start();  // now, because starting it may fail
    struct Open {
      Open(std::size_t n, std::function<void()> t) : left(n), then(std::move(t)) {}
      std::atomic<std::size_t> left;
      std::function<void()> then;
    };
    const auto open = std::make_shared<Open>(tickets_.size(), std::move(then));
    const auto afterwards = afterwards_;
    for (const auto& ticket : std::vector(tickets_)) {
      ticket->when_ended([open, afterwards] {
        if (open->left.fetch_sub(1) > 1) return;
        auto last = std::move(open->then);
        if (afterwards) return afterwards->post(std::move(last));
        last();
      });
    }
  }

  std::exception_ptr exception() const override {
    for (const auto& ticket : tickets_) {
      if (auto failure = ticket->exception()) return failure;
    }
    return nullptr;
  }

  Rank source() const override {
    return tickets_.empty() ? kAnySource : tickets_.front()->source();
  }

 private:
  Error of_parent() const {
    return Error(ErrorKind::kUsage,
                 tickets_.front()->what() +
                     " was started by the parent process and ends there: "
                     "wait for it before you fork");
  }

  const OwnerProcess owner_;
  std::vector<mail::TicketPtr> tickets_;
  std::shared_ptr<TaskThread> afterwards_;
};

}  // namespace peal::native
