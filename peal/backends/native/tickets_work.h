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
#include "peal/base/per_process.h"
#include "peal/base/task_thread.h"
#include "peal/engine/ticket.h"
#include "peal/group/work.h"

namespace peal::native {

/// Ends when all of its tickets have; with the first failure among them.
class TicketsWork final : public Work {
 public:
  /// `afterwards`: who does what is to be done when it has ended; null where a ticket's own thread
  /// may.
  explicit TicketsWork(std::vector<engine::TicketPtr> tickets,
                       std::shared_ptr<TaskThread> afterwards = nullptr)
      : tickets_(std::move(tickets)), afterwards_(std::move(afterwards)) {}

  void wait(Timeout timeout) override {
    if (!owner_.is_current() && !is_completed()) throw of_parent();
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    for (const auto& ticket : tickets_) {
      if (!ticket->wait(deadline)) {
        throw Error(ErrorKind::kTimeout, ticket->what() + " has not ended yet; it goes on");
      }
    }
    if (const auto failure = exception()) std::rethrow_exception(failure);
  }

  bool is_completed() const override {
    return std::all_of(tickets_.begin(), tickets_.end(), [](const auto& t) { return t->ended(); });
  }

  /// What is called may let go of this.
  void when_completed(std::function<void()> then) override {
    if (is_completed()) return then();
    if (!owner_.is_current()) throw of_parent();
    if (afterwards_) afterwards_->start();  // as long as it may fail
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
                     " was started by the process that this one was forked from, and ends there: "
                     "wait for it before you fork");
  }

  const OwnerProcess owner_;
  std::vector<engine::TicketPtr> tickets_;
  std::shared_ptr<TaskThread> afterwards_;
};

}  // namespace peal::native
