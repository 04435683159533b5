// Reports operations that some ranks have submitted and others have not: which ranks are missing,
// and where they stand. Ranks ask each other by messages, because a rank that computes takes part
// in no collective.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/report.h"
#include "peal/group/process_group.h"
#include "peal/named/stall_report.h"

namespace peal::named {

/// A thread of peal on each rank answers at once which names the rank has. So a busy program, or a
/// program that holds Python's GIL, does not count as stopped. A second message says where the
/// program is, as soon as this can be found. Late answers count too. If a rank leaves a question
/// unanswered in several looks, for longer than the timeout of the group, its process counts as
/// stopped, and the watch ends the group.
/// Threads: one of its own, and those on which the group calls callbacks of messages.
class StallWatch final {
 public:
  struct Parts {
    /// A group for the messages of the watch alone. If ranks leave while this rank waits for
    /// questions, only this group ends, and not the group of the operations.
    ProcessGroupPtr group;
    Timeout warning{};
    Timeout shutdown{};  // 0: never
    /// How long this rank waits for the answers of other ranks before it reports.
    Timeout answers_within = std::chrono::seconds(3);
    Report report;
    /// Ends the group of the operations.
    std::function<void(const std::string& reason)> abort;
    /// The operations that have waited longer than `warning`.
    std::function<Stalled()> stalled;
    /// Answers a question of another rank, without the place of the program. Must not wait for the
    /// program.
    std::function<Standing(const std::vector<std::string>& names)> standing;
    /// Where the program is. May wait for the program, for example for Python's GIL. Empty:
    /// unknown.
    std::function<std::string()> whereabouts;
  };

  /// Answers questions from now on.
  /// Errors: those of messages.
  explicit StallWatch(Parts parts);
  /// Waits for calls of the parts, and leaves the group.
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// Starts the thread that asks, unless it runs. Errors: resource.
  void start();

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
};

}  // namespace peal::named
