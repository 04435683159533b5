#include "tests/drill/drill.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/testing/sanitized.h"
#include "peal/net/testing/reserved_port.h"

#include "tests/support/leftovers.h"
#include "tests/support/notice.h"
#include "tests/support/processes.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// The timeout of the job: short if the drill waits for it. It counts from when all ranks have
/// started.
constexpr milliseconds kLongTimeout{3'600'000};
constexpr milliseconds kShortTimeout{kSanitized ? 10'000 : 5'000};
/// How long a paused rank stays frozen.
constexpr milliseconds kPaused{500};
/// No rank waits for the timeout if the target continues, or if its death is noticed. The death of
/// a target before the meeting is not noticed.
milliseconds timeout_of(const Drill& drill) {
  const bool may_be_unknown = drill.action == Action::kKill && drill.phase == Phase::kRendezvous;
  return drill.action == Action::kFreeze || may_be_unknown ? kShortTimeout : kLongTimeout;
}

/// In microseconds: about as long as the phase takes.
std::size_t longest_delay(Phase phase) {
  switch (phase) {
    case Phase::kRendezvous:
      return 8'000;
    case Phase::kOperation:
      return 50'000;
    case Phase::kTeardown:
      return 500;
  }
  return 0;
}

/// The output of one rank; see rank.cpp.
struct Words {
  std::optional<nanoseconds> dying;
  std::optional<nanoseconds> ended;
  std::string error;
  std::optional<std::string> again;
  std::string wrong;
  bool left = false;
};

Words words_of(const std::string& output) {
  Words words;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string what, rest;
    std::int64_t time = 0;
    parts >> what;
    if (what == "dying" || what == "ended") parts >> time;
    std::getline(parts >> std::ws, rest);
    if (what == "dying") words.dying = nanoseconds(time);
    if (what == "ended") {
      words.ended = nanoseconds(time);
      words.error = rest;
    }
    if (what == "again") words.again = rest;
    if (what == "wrong") words.wrong = rest;
    if (what == "left") words.left = true;
  }
  return words;
}

class Run {
 public:
  explicit Run(const Drill& drill)
      : drill_(drill), mark_(fmt::format("PEAL_TEST_JOB=drill.{}.{}", ::getpid(), drill.seed)) {}

  DrillResult operator()() {
    start();
    let_all_go();
    if (!processes_.wait_for_output_or_end(target(), "dying", Deadline::after(kLimit))) {
      complain("the fault did not reach the target");
    }
    const Leftovers before = belongings_of(mark_);
    if (drill_.action == Action::kPause) {
      std::this_thread::sleep_for(kPaused);
      release();
    }
    if (drill_.action == Action::kFreeze) release_when_the_others_have_ended();
    judge(processes_.wait(Deadline::after(kLimit)));
    if (const Leftovers left = left_of(before, mark_); left != Leftovers{}) {
      complain(fmt::format("left behind: {}", (std::ostringstream() << left).str()));
    }
    return result_;
  }

 private:
  std::size_t target() const { return static_cast<std::size_t>(drill_.target); }

  void complain(const std::string& what) { result_.complaints.push_back(what); }

  void start() {
    for (Rank rank = 0; rank < drill_.ranks; ++rank) {
      std::vector<std::string> command = {PEAL_DRILL_RANK};
      std::ranges::copy(rank_arguments(drill_), std::back_inserter(command));
      command.push_back(std::to_string(rank));
      const std::string self = std::to_string(rank), size = std::to_string(drill_.ranks);
      Processes::Variables variables = {
          {"RANK", self},
          {"WORLD_SIZE", size},
          {"LOCAL_RANK", self},
          {"LOCAL_WORLD_SIZE", size},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port_.text()},
          {"PEAL_SECRET", "a secret of the drill"},
          {"PEAL_STAGE", "64K"},
          {"PEAL_TRANSPORT", drill_.transport},
          {"PEAL_TIMEOUT",
           fmt::format("{}", static_cast<double>(timeout_of(drill_).count()) / 1000)},
          {"PEAL_TEST_JOB", mark_.substr(mark_.find('=') + 1)}};
      const bool is_stopped = drill_.action == Action::kFreeze || drill_.action == Action::kPause;
      if (rank == drill_.target && is_stopped) variables.merge(without_leak_check());
      variables.merge(start_.variables());
      processes_.start(command, variables);
    }
  }

  /// The timeouts of all ranks begin here, when all ranks can join the group.
  void let_all_go() {
    const Deadline deadline = Deadline::after(kLimit);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(drill_.ranks); ++rank) {
      if (!processes_.wait_for_output(rank, "ready", deadline)) {
        complain(fmt::format("rank {} did not start", rank));
      }
    }
    opened_ = Clock::now();
    start_.open();
  }

  void release_when_the_others_have_ended() {
    const Deadline deadline = Deadline::after(kLimit);
    for (Rank rank = 0; rank < drill_.ranks; ++rank) {
      if (rank == drill_.target) continue;
      const auto which = static_cast<std::size_t>(rank);
      if (!processes_.wait_for_end(which, deadline)) complain(fmt::format("rank {} hangs", rank));
    }
    release();
  }

  /// Repeats the signal until the target has ended: a signal to a target that has not stopped yet
  /// would be lost.
  void release() {
    const Deadline deadline = Deadline::after(kLimit);
    do {
      processes_.signal(target(), SIGCONT);
    } while (!processes_.wait_for_end(target(), Deadline::after(milliseconds(50))) &&
             !deadline.passed());
  }

  void judge(const std::vector<Processes::Ended>& ranks) {
    const Words of_target = words_of(ranks[target()].output);
    const bool too_slow = std::ranges::any_of(ranks, [&](const Processes::Ended& ended) {
      return was_too_slow(words_of(ended.output), of_target.dying);
    });
    result_.inconclusive = !of_target.dying || too_slow;
    for (Rank rank = 0; rank < drill_.ranks; ++rank) {
      const auto& ended = ranks[static_cast<std::size_t>(rank)];
      const std::string complaint = !ended.in_time                          ? "hangs"
                                    : !words_of(ended.output).wrong.empty() ? "got a wrong result"
                                    : too_slow && ends_by_error(ended)      ? ""
                                    : !of_target.dying ? complaint_about_unharmed(ended)
                                    : rank == drill_.target
                                        ? complaint_about_target(ended)
                                        : complaint_about_survivor(ended, *of_target.dying);
      if (complaint.empty()) continue;
      complain(fmt::format("rank {}{}: {}; it wrote:\n{}",
                           rank,
                           rank == drill_.target ? " (the target)" : "",
                           complaint,
                           ended.output));
    }
  }

  /// Whether an operation before the strike took longer than the short timeout. This happens on a
  /// crowded machine and ends the other ranks too. Such a drill shows nothing.
  bool was_too_slow(const Words& words, std::optional<nanoseconds> strike) const {
    return timeout_of(drill_) == kShortTimeout && words.ended &&
           words.error.starts_with("timeout: ") && (!strike || *words.ended < *strike) &&
           *words.ended >= opened_.time_since_epoch() + kShortTimeout;
  }

  /// Or as the target does.
  static bool ends_by_error(const Processes::Ended& ended) {
    return ended.code == 3 || ended.code == 0 || ended.code == -SIGKILL;
  }

  /// For a job in which the target finished before the fault.
  std::string complaint_about_unharmed(const Processes::Ended& ended) const {
    if (drill_.phase == Phase::kOperation && drill_.action != Action::kPause) {
      return "ended although it has work until the fault reaches the target";
    }
    return ended.code == 0 && words_of(ended.output).left
               ? ""
               : fmt::format("ended with {} although the fault did not reach the target",
                             ended.code);
  }

  std::string complaint_about_target(const Processes::Ended& ended) const {
    switch (drill_.action) {
      case Action::kKill:
        return ended.code == -SIGKILL ? "" : "was not killed";
      case Action::kFreeze:  // the others gave it up, or did not need it any more
        return ended.code == 3 || ended.code == 0 ? "" : fmt::format("ended with {}", ended.code);
      case Action::kPause:
        return ended.code == 0 ? "" : fmt::format("ended with {}", ended.code);
    }
    return "";
  }

  std::string complaint_about_survivor(const Processes::Ended& ended, nanoseconds strike) {
    const Words words = words_of(ended.output);
    if (!words.ended) return may_end_well() && words.left ? "" : "ended without an error";
    if (drill_.action == Action::kPause) return "did not wait for a rank that went on in time";
    ++result_.survivors_ended;
    if (words.again && *words.again != words.error) return "a later call threw another error";
    if (words.error.find(fmt::format("rank {}", drill_.target)) == std::string::npos) {
      return "does not name the target";
    }
    return complaint_about_time_and_kind(words, strike);
  }

  /// A rank that does not need the target any more, or not yet, may not notice. A target that the
  /// fault reaches late in the rendezvous may have done all its work.
  bool may_end_well() const {
    return drill_.phase != Phase::kOperation || drill_.action == Action::kPause;
  }

  std::string complaint_about_time_and_kind(const Words& words, nanoseconds strike) {
    const bool lost = words.error.starts_with("peer_lost: ");
    const bool late = words.error.starts_with("timeout: ");
    if (!lost && !late) return "the error has the wrong kind";
    // Only the launcher knows of a rank that ended before it joined the group.
    const bool unknown = words.error.find("did not join the group") != std::string::npos ||
                         words.error.find("cannot reach rank 0") != std::string::npos;
    if (drill_.action == Action::kKill && late && !unknown)
      return "a killed rank is reported as a timeout";
    if (drill_.phase == Phase::kOperation && drill_.action == Action::kFreeze) {
      if (lost) return "a frozen rank is reported as lost";
      if (words.error.find("is stopped") == std::string::npos)
        return "does not say that the rank is stopped";
    }
    const nanoseconds allowed = late || unknown ? nanoseconds(timeout_of(drill_)) : nanoseconds(0);
    const nanoseconds took = *words.ended - strike - allowed;
    result_.slowest_notice = std::max(result_.slowest_notice, took);
    const nanoseconds limit = notice_limit();
    if (took > limit) {
      return fmt::format("ended {} ms too late", (took - limit).count() / 1'000'000);
    }
    return "";
  }

  const Drill& drill_;
  std::string mark_;
  net::ReservedPort port_;
  StartSignal start_;
  TimePoint opened_;  // when the ranks were allowed to start
  Processes processes_;
  DrillResult result_;
};

}  // namespace

std::string name_of(Phase phase) {
  switch (phase) {
    case Phase::kRendezvous:
      return "rendezvous";
    case Phase::kOperation:
      return "operation";
    case Phase::kTeardown:
      return "teardown";
  }
  return "?";
}

std::string name_of(Action action) {
  switch (action) {
    case Action::kKill:
      return "killed";
    case Action::kFreeze:
      return "frozen";
    case Action::kPause:
      return "paused";
  }
  return "?";
}

Drill random_drill(unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](std::size_t count) { return random() % count; };
  Drill drill;
  drill.seed = seed;
  drill.ranks = 2 + static_cast<int>(any(7));
  drill.transport = any(2) == 0 ? "shm" : "tcp";
  drill.phase = kAllPhases[any(kAllPhases.size())];
  // A kill is the most likely end of a rank.
  drill.action = any(2) == 0 ? Action::kKill : kAllActions[any(kAllActions.size())];
  drill.target = static_cast<Rank>(any(static_cast<std::size_t>(drill.ranks)));
  drill.delay = std::chrono::microseconds(any(longest_delay(drill.phase)));
  const bool is_operation = drill.phase == Phase::kOperation;
  drill.rounds = is_operation ? (drill.action == Action::kPause ? 100 : 1'000'000) : 10;
  return drill;
}

std::string describe(const Drill& drill) {
  return fmt::format("drill {}: {} ranks over {}, rank {} is {} in the {} phase after {} us",
                     drill.seed,
                     drill.ranks,
                     drill.transport,
                     drill.target,
                     name_of(drill.action),
                     name_of(drill.phase),
                     drill.delay.count());
}

std::vector<std::string> rank_arguments(const Drill& drill) {
  return {std::to_string(drill.seed),
          std::to_string(drill.ranks),
          drill.transport,
          std::to_string(static_cast<int>(drill.phase)),
          std::to_string(static_cast<int>(drill.action)),
          std::to_string(drill.target),
          std::to_string(drill.delay.count()),
          std::to_string(drill.rounds)};
}

Drill drill_of(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::stoi(arguments.at(i)); };
  return {.seed = static_cast<unsigned>(std::stoul(arguments.at(0))),
          .ranks = number(1),
          .transport = arguments.at(2),
          .phase = kAllPhases.at(static_cast<std::size_t>(number(3))),
          .action = kAllActions.at(static_cast<std::size_t>(number(4))),
          .target = number(5),
          .delay = std::chrono::microseconds(number(6)),
          .rounds = number(7)};
}

DrillResult run(const Drill& drill) { return Run(drill)(); }

}  // namespace peal::testing
