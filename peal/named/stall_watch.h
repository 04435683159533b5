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

/// A rank answers at once which names it has, on a thread of peal's: a program that does not come
/// back, or that holds Python's GIL, is not taken for a stopped one. The place of the program
/// follows, when the program lets it be found. A late answer is as good as an early one. A rank
/// that leaves several looks in a row without an answer, for longer than the timeout of the group,
/// is stopped; then the watch ends the group. Threads: one of its own, and those on which the group
/// calls callbacks of messages.
class StallWatch final {
 public:
  struct Parts {
    /// A group for the messages of the watch alone: ranks that leave while this rank waits for
    /// questions end this group, and not that of the operations.
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
    /// Answers a question of another rank, without its place. Must not wait for the program.
    std::function<Standing(const std::vector<std::string>& names)> standing;
    /// Where the program is. May wait for the program, as for Python's GIL. Empty: not told.
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
