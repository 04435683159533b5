// The result of a launch: a value, its exit code and its text. Made by the launcher, printed by the
// program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/launch/log_file.h"
#include "peal/launch/process_end.h"

namespace peal::launch {

/// The program exists but could not be executed.
struct StartFailure {
  Rank rank = 0;
  std::string program;
  int error = 0;  // errno
  friend bool operator==(const StartFailure&, const StartFailure&) = default;
};

/// The diagnosis of a failed launch, from the records of its ranks.
struct PostMortem {
  std::string sentence{};           // the cause; empty if no rank failed by itself
  std::vector<Rank> causes{};       // the ranks that caused it, by `peal why`
  std::vector<Rank> victims{};      // ranks whose first error is the loss of another rank
  std::optional<int> other_node{};  // the node of the cause, if it is another node
  std::string records{};            // the path of the records, for `peal why`; empty: not kept
  std::string problem{};            // why records or sentence are missing; empty: no problem
  friend bool operator==(const PostMortem&, const PostMortem&) = default;
};

struct LaunchReport {
  std::vector<ProcessEnd> ends;  // in the order in which they ended
  std::optional<StartFailure> start_failure;
  int signal = 0;                       // the signal that ended the launch; 0: none
  int late_signal = 0;                  // a signal while the launch was already ending; 0: none
  Duration after{};                     // when all processes had ended
  bool output_closed = false;           // the reader of the launcher's stdout is gone
  bool guard_lost = false;              // the guard was killed, and the ranks with it
  int survivors = 0;                    // processes that SIGKILL did not end
  int cut_short = 0;                    // the signal that cut the grace short; 0: none
  bool is_decided = false;              // the deciding ranks have ended well
  bool was_warned = false;              // the ranks, before a time limit
  std::optional<Timeout> time_limit{};  // that has ended the launch
  bool was_cancelled = false;           // LaunchWatch::look has ended the launch
  Timeout grace{};
  int node = 0;  // the ranks are those of this node, one of `nodes`
  int nodes = 1;
  std::vector<LostOutput> lost_output;
  std::optional<PostMortem> post_mortem;  // nothing: no records, or no failure
  friend bool operator==(const LaunchReport&, const LaunchReport&) = default;
};

/// Lines about missing output; empty if nothing is lost.
std::string describe(const std::vector<LostOutput>& all);
/// Lines about the diagnosis from the records.
std::string describe(const PostMortem& found);

/// The most important of the ranks that failed by themselves; null if no rank did, or if all ranks
/// handled a signal. This is the rank that the records name as the cause; of several, the one that
/// ended first. Without records, or if that rank did not fail by itself, this is the first rank
/// that is not a victim; a crash goes before an exit code. If all are victims, this is the first of
/// them.
const ProcessEnd* main_failure(const LaunchReport& report);
const ProcessEnd* main_failure(LaunchReport&&) = delete;  // the result would dangle

/// The signal that every rank handled: it saved its work and then exited. 0 if there is no such
/// signal. If the launcher got the signal, each exit code is 0 or 128 + signal. If a rank got it
/// and notified the others, each exit code is 128 + signal.
int handled_signal(const LaunchReport& report);

/// Whether every rank ended with exit code 0.
bool all_went_well(const LaunchReport& report);

/// The exit code of the launcher: 0 if every rank ended with 0 and all output was written, 1 if
/// only output is missing. 124 after a time limit, 143 if the launch was cancelled. Otherwise the
/// code that a shell gives for the main failure: its exit code or 128 + signal. 126 or 127 if the
/// program could not be executed.
int exit_code(const LaunchReport& report);

/// "ranks 0 and 1 were killed, not having ended within 5 s (--grace)"; empty if the launcher killed
/// no rank. `grace_option` is the name under which the user knows the grace.
std::string describe_kills(const LaunchReport& report, std::string_view grace_option);

/// The text of the report: the failures, the main failure first; the state of the other ranks; the
/// last lines of the main failure; the errors of other ranks that are not victims, equal ones once;
/// the diagnosis from the records; and missing output. A bounded number of lines; empty if there is
/// nothing to report.
std::string describe(const LaunchReport& report);

}  // namespace peal::launch
