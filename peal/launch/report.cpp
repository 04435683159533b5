#include "peal/launch/report.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peal::launch {
namespace {

constexpr int kSignalBase = 128;  // what shells add to a signal's number

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
std::string subject(const std::vector<Rank>& ranks) {
  constexpr std::size_t kNamed = 8;
  if (ranks.size() == 1) return fmt::format("rank {} was", ranks.front());
  if (ranks.size() > kNamed) return fmt::format("{} ranks were", ranks.size());
  return fmt::format(
      "ranks {} and {} were", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

/// The ranks that ended after the first failure, since they were told to, and did so.
std::vector<Rank> stopped(const LaunchReport& report) {
  std::vector<Rank> ranks;
  bool after = false;
  for (const RankEnd& end : report.ends) {
    const bool killed = std::ranges::count(report.killed, end.rank) > 0;
    if (after && !killed) ranks.push_back(end.rank);
    after = after || end == report.first_failure;
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string failure(const LaunchReport& report) {
  const RankEnd& first = *report.first_failure;
  std::string text = fmt::format("peal: rank {} (pid {}) {}{} after {:.1f} s",
                                 first.rank,
                                 first.pid,
                                 how(first.status),
                                 hint(first.status),
                                 seconds(first.after));
  if (const auto others = stopped(report); !others.empty()) {
    text += fmt::format("; {} stopped", subject(others));
  }
  if (report.last_lines.empty()) return text + ". It wrote nothing.\n";
  text += fmt::format(". The last lines of rank {}:\n", first.rank);
  for (const std::string& line : report.last_lines) text += fmt::format("  | {}\n", line);
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
  return report.first_failure ? failure(report) : "";
}

}  // namespace

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

int exit_code(const LaunchReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.start_failure) return report.start_failure->error == ENOENT ? 127 : 126;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (report.first_failure) return shell_code(report.first_failure->status);
  const auto bad = std::find_if(report.ends.begin(), report.ends.end(), [](const RankEnd& end) {
    return failed(end.status);
  });
  if (bad == report.ends.end()) return 0;
  // Told to end by a signal: what the first rank made of it, unless it had to be killed.
  return report.killed.empty() ? shell_code(bad->status) : kSignalBase + report.signal;
}

std::string describe(const LaunchReport& report) {
  std::string text = what_ended_it(report);
  if (!report.killed.empty() && !report.output_closed) {
    text += fmt::format("peal: {} killed, not having ended within {} s (--grace)\n",
                        subject(report.killed),
                        static_cast<double>(report.grace.count()) / 1000.0);
  }
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  return text;
}

}  // namespace peal::launch
