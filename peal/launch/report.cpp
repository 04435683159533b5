#include "peal/launch/report.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

constexpr int kSignalBase = 128;  // what shells add to a signal's number
/// By which the launcher and its user tell a rank to end.
constexpr std::array kSignalsToEnd = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

int shell_code(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string how(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was killed by {}", signal_name(WTERMSIG(status)));
}

/// Whoever gets SIGKILL and asked for none should look at the memory.
std::string hint(int status) {
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "";
  return " (not by peal; when memory runs out, the kernel does this, and dmesg shows it)";
}

/// "rank 0 was", "ranks 0, 2 and 3 were", "12 ranks were"
std::string subject(std::vector<Rank> ranks) {
  constexpr std::size_t kNamed = 8;
  if (ranks.size() == 1) return fmt::format("rank {} was", ranks.front());
  if (ranks.size() > kNamed) return fmt::format("{} ranks were", ranks.size());
  std::ranges::sort(ranks);
  return fmt::format(
      "ranks {} and {} were", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

/// Whether it ended as one does that is told to: by the signal, whether it handled it or not.
bool obeyed(const RankEnd& end) {
  const int code = shell_code(end.status);
  return code == 0 || std::ranges::count(kSignalsToEnd, code - kSignalBase) > 0;
}

bool was_stopped(const RankEnd& end) { return end.ending == Ending::kTold && obeyed(end); }
bool was_killed(const RankEnd& end) { return end.ending == Ending::kKilled; }

template <class Predicate>
std::vector<Rank> ranks_that(const LaunchReport& report, Predicate predicate) {
  std::vector<Rank> ranks;
  for (const RankEnd& end : report.ends) {
    if (predicate(end)) ranks.push_back(end.rank);
  }
  return ranks;
}

/// peal's own words, which programs print as the what() of the error.
bool lost_a_peer(const RankEnd& end) {
  const std::string words = fmt::format("{}: ", name_of(ErrorKind::kPeerLost));
  return std::ranges::any_of(end.last_lines, [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

/// A signal that nobody raises in answer to an error, as an uncaught one does by abort().
bool crashed(const RankEnd& end) {
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGABRT;
}

/// How likely it is that this failure came of another: the lower, the less.
int is_consequence(const RankEnd& end) { return lost_a_peer(end) ? 2 : crashed(end) ? 0 : 1; }

std::string describe(const RankEnd& end) {
  return fmt::format("rank {} (pid {}) {}{} after {:.1f} s{}",
                     end.rank,
                     end.pid,
                     how(end.status),
                     hint(end.status),
                     seconds(end.after),
                     lost_a_peer(end) ? ", having lost another rank (peer_lost)" : "");
}

/// "peal: rank 1 (pid 12) ...; rank 0 was stopped", or a line for each that failed.
std::string who_failed(const LaunchReport& report) {
  const std::size_t failures = ranks_that(report, failed_by_itself).size();
  const std::vector<Rank> others = ranks_that(report, was_stopped);
  const std::string stopped = others.empty() ? "" : fmt::format("; {} stopped", subject(others));
  if (failures == 1) return fmt::format("peal: {}{}\n", describe(*main_failure(report)), stopped);
  std::string text = fmt::format("peal: {} ranks failed, in this order{}:\n", failures, stopped);
  for (const RankEnd& end : report.ends) {
    if (failed_by_itself(end)) text += fmt::format("  {}\n", describe(end));
  }
  return text;
}

std::string failure(const LaunchReport& report) {
  std::string text = who_failed(report);
  for (const RankEnd& end : report.ends) {
    if (end.ending == Ending::kTold && !obeyed(end)) {
      text += fmt::format("peal: {}, when it had been told to end\n", describe(end));
    }
  }
  const RankEnd& main = *main_failure(report);
  if (main.last_lines.empty())
    return text + fmt::format("peal: rank {} wrote nothing\n", main.rank);
  text += fmt::format("peal: the last lines of rank {}:\n", main.rank);
  for (const std::string& line : main.last_lines) text += fmt::format("  | {}\n", line);
  return text;
}

std::string not_started(const StartFailure& failure) {
  std::string reason = ::strerrordesc_np(failure.error);
  if (failure.error == ENOEXEC) reason += "; a script needs a first line such as #!/bin/sh";
  if (failure.error == ENOENT) reason += "; the interpreter in its first line is missing";
  return fmt::format("peal: cannot start rank {}: {}: {}\n", failure.rank, failure.program, reason);
}

std::string what_ended_it(const LaunchReport& report) {
  if (report.output_closed) return "";  // as with any program whose reader is gone
  if (report.start_failure) return not_started(*report.start_failure);
  if (report.guard_lost) {
    return fmt::format(
        "peal: the process that guards the ranks was killed after {:.1f} s, and so they were too\n",
        seconds(report.after));
  }
  if (report.signal != 0) {
    return fmt::format(
        "peal: ended by {} after {:.1f} s\n", signal_name(report.signal), seconds(report.after));
  }
  return main_failure(report) != nullptr ? failure(report) : "";
}

}  // namespace

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

bool failed_by_itself(const RankEnd& end) {
  return end.ending == Ending::kItself && failed(end.status);
}

const RankEnd* main_failure(const LaunchReport& report) {
  const RankEnd* main = nullptr;
  for (const RankEnd& end : report.ends) {
    if (!failed_by_itself(end)) continue;
    if (main == nullptr || is_consequence(end) < is_consequence(*main)) main = &end;
  }
  return main;
}

int exit_code(const LaunchReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.start_failure) return report.start_failure->error == ENOENT ? 127 : 126;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (const RankEnd* main = main_failure(report)) return shell_code(main->status);
  const auto bad = std::ranges::find_if(report.ends, failed, &RankEnd::status);
  if (bad == report.ends.end()) return 0;
  // Told to end by a signal: what the first rank made of it, unless it had to be killed.
  const bool killed = std::ranges::any_of(report.ends, was_killed);
  return killed ? kSignalBase + report.signal : shell_code(bad->status);
}

std::string describe(const LaunchReport& report) {
  std::string text = what_ended_it(report);
  if (const auto killed = ranks_that(report, was_killed);
      !killed.empty() && !report.output_closed) {
    text += fmt::format("peal: {} killed, not having ended within {} s (--grace)\n",
                        subject(killed),
                        static_cast<double>(report.grace.count()) / 1000.0);
  }
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  return text;
}

}  // namespace peal::launch
