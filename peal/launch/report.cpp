#include "peal/launch/report.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch {
namespace {

constexpr int kOutputMissing = 1;
constexpr int kSignalBase = 128;   // what shells add to a signal's number
constexpr std::size_t kNamed = 8;  // where there are more, they are counted
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

/// Whoever gets SIGKILL and asked for none should look at the memory.
std::string hint(int status) {
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "";
  return " (not by the launcher; when memory runs out, the kernel does this, and dmesg shows it)";
}

/// "rank 0", "ranks 0, 2 and 3", "12 ranks"
std::string names_of(std::vector<Rank> ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() > kNamed) return fmt::format("{} ranks", ranks.size());
  std::ranges::sort(ranks);
  return fmt::format(
      "ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

/// The same with "was" or "were".
std::string subject(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", names_of(ranks), ranks.size() == 1 ? "was" : "were");
}

/// Whether it ended as one does that is told to: by the signal, whether it handled it or not.
bool obeyed(const ProcessEnd& end) {
  const int code = shell_code(end.status);
  return code == 0 || std::ranges::count(kSignalsToEnd, code - kSignalBase) > 0;
}

bool was_told(const ProcessEnd& end) { return end.ending == Ending::kTold && obeyed(end); }
bool disobeyed(const ProcessEnd& end) { return end.ending == Ending::kTold && !obeyed(end); }
bool was_killed(const ProcessEnd& end) { return end.ending == Ending::kKilled; }

template <class Predicate>
std::vector<Rank> ranks_that(const LaunchReport& report, Predicate predicate) {
  std::vector<Rank> ranks;
  for (const ProcessEnd& end : report.ends) {
    if (predicate(end)) ranks.push_back(end.rank);
  }
  return ranks;
}

/// peal's own words, which programs print as the what() of the error. One that has aborted its
/// group gets that error too, and has lost nobody.
bool lost_a_peer(const ProcessEnd& end) {
  const std::string words = fmt::format("{}: ", name_of(ErrorKind::kPeerLost));
  const std::string own_doing = aborted_by(end.rank);
  return std::ranges::any_of(end.last_lines, [&](const std::string& line) {
    return line.find(words) != std::string::npos && line.find(own_doing) == std::string::npos;
  });
}

/// A signal that nobody raises in answer to an error, as an uncaught one does by abort().
bool crashed(const ProcessEnd& end) {
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGABRT;
}

/// What a rank failed of. The earlier here, the less likely it is that this came of another's
/// failure.
enum class Origin : unsigned char { kCrash, kOwnError, kLostPeer };

Origin origin_of(const ProcessEnd& end) {
  if (lost_a_peer(end)) return Origin::kLostPeer;
  return crashed(end) ? Origin::kCrash : Origin::kOwnError;
}

/// Those that failed by themselves, the likely cause of the others first.
std::vector<ProcessEnd> failures_of(const LaunchReport& report) {
  std::vector<ProcessEnd> failures;
  std::ranges::copy_if(report.ends, std::back_inserter(failures), failed_by_itself);
  std::ranges::stable_sort(failures, {}, origin_of);
  return failures;
}

std::string describe(const ProcessEnd& end) {
  return fmt::format("rank {} (pid {}) {}{} after {:.1f} s{}",
                     end.rank,
                     end.pid,
                     describe_status(end.status),
                     hint(end.status),
                     seconds(end.after),
                     lost_a_peer(end) ? ", having lost another rank (peer_lost)" : "");
}

/// A line for each of the first, and one for how many more there are.
std::string lines_of(std::span<const ProcessEnd> ends) {
  std::string text;
  for (const ProcessEnd& end : ends.first(std::min(ends.size(), kNamed))) {
    text += fmt::format("  {}\n", describe(end));
  }
  if (ends.size() > kNamed) text += fmt::format("  and {} more\n", ends.size() - kNamed);
  return text;
}

/// Those that failed, and one line for all that only lost a peer, unless all did.
std::string list(std::span<const ProcessEnd> failures) {
  const auto lost = std::ranges::find(failures, Origin::kLostPeer, origin_of);
  const auto own = static_cast<std::size_t>(lost - failures.begin());
  if (own == 0 || own == failures.size()) return lines_of(failures);
  std::vector<Rank> others;
  std::ranges::transform(failures.subspan(own), std::back_inserter(others), &ProcessEnd::rank);
  return lines_of(failures.first(own)) +
         fmt::format("  {} ended having lost another rank (peer_lost)\n", names_of(others));
}

/// "peal: rank 1 (pid 12) ...; rank 0 was told to end", or a list of those that failed.
std::string who_failed(const LaunchReport& report) {
  const std::vector<ProcessEnd> failures = failures_of(report);
  const std::vector<Rank> others = ranks_that(report, was_told);
  const std::string told = others.empty() ? "" : fmt::format("; {} told to end", subject(others));
  if (failures.size() == 1) return fmt::format("peal: {}{}\n", describe(failures.front()), told);
  // Where all have lost another, none of them is the cause: a link is, or one that ended well.
  const bool is_cause_there = origin_of(failures.front()) != Origin::kLostPeer;
  return fmt::format("peal: {} ranks failed{}{}:\n{}",
                     failures.size(),
                     is_cause_there ? ", the likely cause first" : "",
                     told,
                     list(failures));
}

/// Of those that were told to end the ones that made something else of it.
std::string who_disobeyed(const LaunchReport& report) {
  std::vector<ProcessEnd> ends;
  std::ranges::copy_if(report.ends, std::back_inserter(ends), disobeyed);
  if (ends.empty()) return "";
  if (ends.size() == 1)
    return fmt::format("peal: {}, when it had been told to end\n", describe(ends.front()));
  return fmt::format(
      "peal: {} ranks failed when they had been told to end:\n{}", ends.size(), lines_of(ends));
}

std::string failure(const LaunchReport& report) {
  std::string text = who_failed(report) + who_disobeyed(report);
  const ProcessEnd& main = *main_failure(report);
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

std::string why_killed(const LaunchReport& report) {
  if (report.cut_short != 0) return fmt::format("as {} asked for", signal_name(report.cut_short));
  return fmt::format("not having ended within {} s (--grace)",
                     static_cast<double>(report.grace.count()) / 1000.0);
}

std::string findings(const PostMortem& found) {
  std::string text;
  if (!found.sentence.empty()) text += fmt::format("peal: why: {}\n", found.sentence);
  if (!found.records.empty()) text += fmt::format("peal: see peal why {}\n", found.records);
  if (!found.problem.empty()) text += fmt::format("peal: {}\n", found.problem);
  return text;
}

observe::RankEnd::Fate fate_of(const ProcessEnd& end) {
  using Fate = observe::RankEnd::Fate;
  if (end.ending == Ending::kItself)
    return failed(end.status) ? Fate::kEndedBadly : Fate::kEndedWell;
  return end.stood_still ? Fate::kStopped : Fate::kEndedByLauncher;
}

std::string fate_text(const ProcessEnd& end) {
  if (end.ending == Ending::kItself) return describe_status(end.status);
  if (end.stood_still) return "stood still, stopped by a signal, until the launcher ended it";
  if (end.ending == Ending::kKilled) return "was killed by the launcher";
  if (obeyed(end)) return "was told to end by the launcher";
  return describe_status(end.status) + ", when the launcher had told it to end";
}

}  // namespace

std::string describe_status(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was killed by {}", signal_name(WTERMSIG(status)));
}

observe::RankEnd record_of(const ProcessEnd& end, observe::WallTime at) {
  return {.rank = end.rank,
          .pid = static_cast<std::uint64_t>(end.pid),
          .at = at,
          .fate = fate_of(end),
          .text = fate_text(end)};
}

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

bool failed_by_itself(const ProcessEnd& end) {
  return end.ending == Ending::kItself && failed(end.status);
}

const ProcessEnd* main_failure(const LaunchReport& report) {
  const ProcessEnd* main = nullptr;
  for (const ProcessEnd& end : report.ends) {
    if (!failed_by_itself(end)) continue;
    if (main == nullptr || origin_of(end) < origin_of(*main)) main = &end;
  }
  return main;
}

namespace {

int exit_code_of_ranks(const LaunchReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.start_failure) return report.start_failure->error == ENOENT ? 127 : 126;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (const ProcessEnd* main = main_failure(report)) return shell_code(main->status);
  const auto bad = std::ranges::find_if(report.ends, failed, &ProcessEnd::status);
  if (bad == report.ends.end()) return 0;
  // Told to end by a signal: what the first rank made of it, unless it had to be killed.
  const bool killed = std::ranges::any_of(report.ends, was_killed);
  return killed ? kSignalBase + report.signal : shell_code(bad->status);
}

/// "peal: logs/rank-0.out: No space left on device: 4711 bytes of output are missing there"
std::string missing_output(const LaunchReport& report) {
  std::string text;
  const std::size_t named = std::min(report.lost_output.size(), kNamed);
  for (const LostOutput& lost : std::span(report.lost_output).first(named)) {
    text += fmt::format(
        "peal: cannot write {}: {}{}\n",
        printable(lost.where),
        ::strerrordesc_np(lost.error),
        lost.bytes == 0 ? "" : fmt::format("; {} bytes of output are missing there", lost.bytes));
  }
  if (report.lost_output.size() > named) {
    text += fmt::format("peal: and {} more files\n", report.lost_output.size() - named);
  }
  return text;
}

}  // namespace

bool all_went_well(const LaunchReport& report) { return exit_code_of_ranks(report) == 0; }

int exit_code(const LaunchReport& report) {
  const int code = exit_code_of_ranks(report);
  return code == 0 && !report.lost_output.empty() ? kOutputMissing : code;
}

std::string describe(const LaunchReport& report) {
  std::string text = what_ended_it(report);
  if (const auto killed = ranks_that(report, was_killed);
      !killed.empty() && !report.output_closed) {
    text += fmt::format("peal: {} killed, {}\n", subject(killed), why_killed(report));
  }
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  if (report.post_mortem) text += findings(*report.post_mortem);
  return text + missing_output(report);
}

}  // namespace peal::launch
