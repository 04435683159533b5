#include "peal/launch/report.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/printable.h"
#include "peal/launch/error_text.h"
#include "peal/launch/signals.h"
#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

constexpr int kOutputMissing = 1;
constexpr int kTimedOut = 124;
constexpr std::size_t kNamed = 8;  // longer lists are cut or counted
/// Signals by which the launcher and its user end a rank.

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// "rank 0", "ranks 0, 2 and 3", "12 ranks"
std::string names_of(std::vector<Rank> ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > kNamed) return fmt::format("{} ranks", ranks.size());
  std::ranges::sort(ranks);
  return fmt::format(
      "ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

/// names_of with "was" or "were".
std::string subject(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", names_of(ranks), ranks.size() == 1 ? "was" : "were");
}

bool ended_as_asked(const ProcessEnd& end) {
  return end.ended_by == EndedBy::kRequest && ended_as_requested(end);
}
bool disobeyed(const ProcessEnd& end) {
  return end.ended_by == EndedBy::kRequest && !ended_as_requested(end);
}
bool was_killed(const ProcessEnd& end) { return end.ended_by == EndedBy::kKill; }

template <class Predicate>
std::vector<Rank> ranks_that(const LaunchReport& report, Predicate predicate) {
  std::vector<Rank> ranks;
  for (const ProcessEnd& end : report.ends) {
    if (predicate(end)) ranks.push_back(end.rank);
  }
  return ranks;
}

/// Whether the rank was killed by a signal other than SIGABRT. An uncaught error ends by abort().
bool crashed(const ProcessEnd& end) {
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGABRT;
}

bool is_lost(const ProcessEnd& end) { return !end.lost.empty(); }

/// Why a rank failed, in the order in which failures are listed.
enum class Origin : unsigned char { kCause, kCrash, kOwnError, kVictim };

bool is_among(Rank rank, const std::vector<Rank>& ranks) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

Origin origin_of(const LaunchReport& report, const ProcessEnd& end) {
  if (is_lost(end)) return Origin::kCause;
  if (report.post_mortem) {
    if (is_among(end.rank, report.post_mortem->causes)) return Origin::kCause;
    if (is_among(end.rank, report.post_mortem->victims)) return Origin::kVictim;
  }
  return crashed(end) ? Origin::kCrash : Origin::kOwnError;
}

/// The ranks that failed by themselves, the likely cause first.
std::vector<ProcessEnd> failures_of(const LaunchReport& report) {
  std::vector<ProcessEnd> failures;
  std::ranges::copy_if(report.ends, std::back_inserter(failures), failed_by_itself);
  std::ranges::stable_sort(
      failures, {}, [&](const ProcessEnd& end) { return origin_of(report, end); });
  return failures;
}

/// "host n2 was lost with ranks 2 and 3 after 7.5 s: no sign of life for 2 s"
std::string line_of_lost(const ProcessEnd& end, const std::vector<Rank>& ranks) {
  return fmt::format("host {} was lost with {} after {:.1f} s: {}",
                     end.host,
                     names_of(ranks),
                     seconds(end.after),
                     end.lost);
}

std::string line_of(const ProcessEnd& end) {
  if (is_lost(end)) return line_of_lost(end, {end.rank});
  return fmt::format("rank {}{} (pid {}) {} after {:.1f} s",
                     end.rank,
                     end.host.empty() ? "" : " on " + end.host,
                     end.pid,
                     how_it_ended(end),
                     seconds(end.after));
}

/// A line for each end; one for all ranks of a host that was lost.
std::vector<std::string> all_lines_of(std::span<const ProcessEnd> ends) {
  std::vector<std::string> lines;
  std::set<std::string> lost_hosts;
  for (const ProcessEnd& end : ends) {
    if (!is_lost(end)) {
      lines.push_back(line_of(end));
    } else if (lost_hosts.insert(end.host).second) {
      std::vector<Rank> ranks;
      for (const ProcessEnd& each : ends) {
        if (is_lost(each) && each.host == end.host) ranks.push_back(each.rank);
      }
      lines.push_back(line_of_lost(end, ranks));
    }
  }
  return lines;
}

/// The first lines, and a line with the number of the others.
std::string lines_of(std::span<const ProcessEnd> ends) {
  const std::vector<std::string> lines = all_lines_of(ends);
  std::string text;
  for (const std::string& line : std::span(lines).first(std::min(lines.size(), kNamed))) {
    text += fmt::format("  {}\n", line);
  }
  if (lines.size() > kNamed) text += fmt::format("  and {} more\n", lines.size() - kNamed);
  return text;
}

/// The failures that are not victims, and one line for all victims. `failures` ends with the
/// victims.
std::string list(std::span<const ProcessEnd> failures, std::size_t victims) {
  const std::size_t others = failures.size() - victims;
  if (victims == 0 || others == 0) return lines_of(failures);
  std::vector<Rank> ranks;
  std::ranges::transform(failures.last(victims), std::back_inserter(ranks), &ProcessEnd::rank);
  return lines_of(failures.first(others)) +
         fmt::format("  {} failed after that, having lost another rank\n", names_of(ranks));
}

/// The causes among the ranks that the launcher has ended; none if a failed rank is a cause.
std::vector<Rank> ended_causes(const LaunchReport& report,
                               std::span<const ProcessEnd> failures,
                               std::vector<Rank> ended) {
  const bool is_known = std::ranges::any_of(
      failures, [&](const ProcessEnd& end) { return origin_of(report, end) == Origin::kCause; });
  std::erase_if(ended, [&](Rank rank) {
    return is_known || !report.post_mortem || !is_among(rank, report.post_mortem->causes);
  });
  return ended;
}

/// "peal: rank 1 (pid 12) ...; rank 0 was ended by the launcher", or a list of the ranks that
/// failed. The launcher may have ended the cause, for example a rank that was stopped.
std::string text_of_failures(const LaunchReport& report) {
  const std::vector<ProcessEnd> failures = failures_of(report);
  const std::vector<Rank> others = ranks_that(report, ended_as_asked);
  const std::vector<Rank> causes = ended_causes(report, failures, others);
  std::string ended;
  if (!others.empty()) ended += fmt::format("; {} ended by the launcher", subject(others));
  if (!causes.empty()) ended += fmt::format("; the likely cause is {}", names_of(causes));
  const std::vector<std::string> lines = all_lines_of(failures);
  if (lines.size() == 1) return fmt::format("peal: {}{}\n", lines.front(), ended);
  const auto victims = static_cast<std::size_t>(std::ranges::count(
      failures, Origin::kVictim, [&](const ProcessEnd& end) { return origin_of(report, end); }));
  // If all failed ranks have lost another rank, the cause is a link, or a rank that ended with 0.
  const bool is_cause_there = victims < failures.size() && causes.empty();
  return fmt::format("peal: {} ranks failed{}{}:\n{}",
                     failures.size(),
                     is_cause_there ? ", the likely cause first" : "",
                     ended,
                     list(failures, victims));
}

/// Ranks that failed in another way after the launcher had asked them to end.
std::string text_of_failures_after_request(const LaunchReport& report) {
  std::vector<ProcessEnd> ends;
  std::ranges::copy_if(report.ends, std::back_inserter(ends), disobeyed);
  if (ends.empty()) return "";
  if (ends.size() == 1)
    return fmt::format("peal: {}, after the launcher asked it to end\n", line_of(ends.front()));
  return fmt::format("peal: {} ranks failed after the launcher asked them to end:\n{}",
                     ends.size(),
                     lines_of(ends));
}

std::string failure(const LaunchReport& report) {
  std::string text = text_of_failures(report) + text_of_failures_after_request(report);
  const ProcessEnd& main = *main_failure(report);
  if (is_lost(main)) return text;
  std::vector<ProcessEnd> failures = failures_of(report);
  const Origin origin = origin_of(report, main);
  std::erase_if(failures, [&](const ProcessEnd& end) {
    return origin != Origin::kVictim && origin_of(report, end) == Origin::kVictim;
  });
  return text + describe_errors(main, failures);
}

std::string not_started(const StartFailure& failure) {
  std::string reason = ::strerrordesc_np(failure.error);
  if (failure.error == ENOEXEC) reason += "; a script needs a first line such as #!/bin/sh";
  if (failure.error == ENOENT) reason += "; the interpreter in its first line is missing";
  return fmt::format("peal: cannot start rank {}: {}: {}\n", failure.rank, failure.program, reason);
}

std::string what_ended_it(const LaunchReport& report) {
  if (report.output_closed) return "";  // silent like any program whose reader is gone
  if (report.start_failure) return not_started(*report.start_failure);
  if (report.guard_lost) {
    return fmt::format(
        "peal: the process that guards the ranks was killed after {:.1f} s, so the kernel killed "
        "the ranks\n",
        seconds(report.after));
  }
  if (report.time_limit) {
    return fmt::format("peal: ended after {:.1f} s by its time limit of {} s\n",
                       seconds(report.after),
                       static_cast<double>(report.time_limit->count()) / 1000.0);
  }
  if (report.was_cancelled) {
    return fmt::format("peal: cancelled after {:.1f} s\n", seconds(report.after));
  }
  if (report.signal != 0) {
    return fmt::format(
        "peal: ended by {} after {:.1f} s\n", signal_name(report.signal), seconds(report.after));
  }
  if (const int signal = handled_signal(report); signal != 0) {
    return fmt::format("peal: every rank ended with exit code {} (128 + {}) after {:.1f} s\n",
                       kSignalBase + signal,
                       signal_name(signal),
                       seconds(report.after));
  }
  if (main_failure(report) != nullptr) return failure(report);
  if (!report.was_warned || !all_went_well(report)) return "";
  return fmt::format(
      "peal: the ranks ended after {:.1f} s, after the warning before the time limit\n",
      seconds(report.after));
}

std::string why_killed(const LaunchReport& report, std::string_view grace_option) {
  if (report.cut_short != 0)
    return fmt::format("as requested by {}", signal_name(report.cut_short));
  return fmt::format("not having ended within {} s ({})",
                     static_cast<double>(report.grace.count()) / 1000.0,
                     grace_option);
}

}  // namespace

std::string describe(const PostMortem& found) {
  std::string text;
  if (!found.sentence.empty()) text += fmt::format("peal: why: {}\n", found.sentence);
  if (found.other_node) {
    text += fmt::format("peal: the cause is on node {}: see the report of its launcher\n",
                        *found.other_node);
  }
  if (!found.records.empty()) text += fmt::format("peal: see peal why {}\n", found.records);
  if (!found.problem.empty()) text += fmt::format("peal: {}\n", found.problem);
  return text;
}

int handled_signal(const LaunchReport& report) {
  if (report.ends.empty()) return 0;
  const bool launcher_got_it = report.signal != 0;
  const int signal =
      launcher_got_it ? report.signal : shell_code(report.ends.front().status) - kSignalBase;
  const bool handled = std::ranges::all_of(report.ends, [&](const ProcessEnd& end) {
    if (!WIFEXITED(end.status)) return false;
    if (launcher_got_it && !failed(end.status)) return true;
    return WEXITSTATUS(end.status) == kSignalBase + signal &&
           (launcher_got_it || end.ended_by == EndedBy::kItself);
  });
  return handled && ends_a_launch(signal) ? signal : 0;
}

const ProcessEnd* main_failure(const LaunchReport& report) {
  if (handled_signal(report) != 0 || report.is_decided) return nullptr;
  const ProcessEnd* main = nullptr;
  for (const ProcessEnd& end : report.ends) {
    if (!failed_by_itself(end)) continue;
    if (main == nullptr || origin_of(report, end) < origin_of(report, *main)) main = &end;
  }
  return main;
}

namespace {

int exit_code_of_ranks(const LaunchReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.start_failure) return report.start_failure->error == ENOENT ? 127 : 126;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (report.is_decided) return 0;
  if (report.time_limit) return kTimedOut;
  if (report.was_cancelled) return kSignalBase + SIGTERM;
  if (const ProcessEnd* main = main_failure(report)) return shell_code(main->status);
  const auto bad = std::ranges::find_if(report.ends, failed, &ProcessEnd::status);
  if (bad == report.ends.end()) return 0;
  // Ended by a signal: the code of the first failed rank, unless one was killed.
  const bool killed = std::ranges::any_of(report.ends, was_killed);
  return killed ? kSignalBase + report.signal : shell_code(bad->status);
}

}  // namespace

/// "peal: logs/rank-0.out: No space left on device: 4711 bytes of output are missing there"
std::string describe(const std::vector<LostOutput>& all) {
  std::string text;
  const std::size_t named = std::min(all.size(), kNamed);
  for (const LostOutput& lost : std::span(all).first(named)) {
    text += fmt::format(
        "peal: cannot write {}: {}{}\n",
        printable(lost.where),
        ::strerrordesc_np(lost.error),
        lost.bytes == 0 ? "" : fmt::format("; {} bytes of output are missing there", lost.bytes));
  }
  if (all.size() > named) text += fmt::format("peal: and {} more files\n", all.size() - named);
  return text;
}

bool all_went_well(const LaunchReport& report) { return exit_code_of_ranks(report) == 0; }

int exit_code(const LaunchReport& report) {
  const int code = exit_code_of_ranks(report);
  return code == 0 && !report.lost_output.empty() ? kOutputMissing : code;
}

std::string describe_kills(const LaunchReport& report, std::string_view grace_option) {
  const auto killed = ranks_that(report, was_killed);
  if (killed.empty()) return "";
  return fmt::format("{} killed, {}", subject(killed), why_killed(report, grace_option));
}

std::string describe(const LaunchReport& report) {
  std::string text = what_ended_it(report);
  if (const std::string kills = describe_kills(report, "--grace");
      !kills.empty() && !report.output_closed) {
    text += fmt::format("peal: {}\n", kills);
  }
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  if (report.post_mortem) {
    text += describe(*report.post_mortem);
  } else if (report.nodes > 1 && main_failure(report) != nullptr) {
    text += fmt::format(
        "peal: this is node {} of {}; the cause may be on another node, whose "
        "launcher has a report of its own\n",
        report.node,
        report.nodes);
  }
  return text + describe(report.lost_output);
}

}  // namespace peal::launch
