// Reports operations that some ranks have submitted and others have not: which ranks are missing,
// and where they stand. Ranks ask each other by messages, because a rank that computes takes part
// in no collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/base/report.h"
#include "peal/group/process_group.h"

namespace peal::named {

/// What a rank tells about itself.
struct Standing {
  std::uint64_t has = 0;  // bit i: the rank has submitted the i-th name of the question
  std::string place;      // where its program is
};

/// Names of operations, the longest waiting first, and how long that one has waited.
struct Stalled {
  std::vector<std::string> names;
  Duration waited{};
};

/// The text of a report. `standings`: by rank; nothing for a rank that did not answer, and for this
/// rank. Empty if no rank is missing.
std::string stall_report(const Stalled& stalled,
                         const std::vector<std::optional<Standing>>& standings,
                         Rank self,
                         const std::vector<Rank>& global_ranks,
                         Timeout warning);

/// Threads: one of its own, and those on which the group calls callbacks of messages.
class StallWatch final {
 public:
  struct Parts {
    /// A group for the messages of the watch alone: ranks that leave while this rank waits for
    /// questions end this group, and not that of the operations.
    ProcessGroupPtr group;
    Timeout warning{};
    Timeout shutdown{};  // 0: never
    Report report;
    /// Ends the group of the operations.
    std::function<void(const std::string& reason)> abort;
    /// The operations that have waited longer than `warning`.
    std::function<Stalled()> stalled;
    /// Answers a question of another rank.
    std::function<Standing(const std::vector<std::string>& names)> standing;
  };

  /// Answers questions from now on.
  /// Errors: those of messages.
  explicit StallWatch(Parts parts);
  /// Waits for an answer that is being sent, and leaves the group.
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// Starts the thread that asks, unless it runs. Errors: resource.
  void start();

 private:
  struct Shared;

  void watch();
  void look();
  std::vector<std::optional<Standing>> ask(const std::vector<std::string>& names);

  std::shared_ptr<Shared> shared_;
};

}  // namespace peal::named
