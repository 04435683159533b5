#include "peal/launch/elastic/elastic_report.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <fmt/format.h>

#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

constexpr std::size_t kNamed = 8;  // longer lists are cut

using How = ElasticEnd::How;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The main failure of the last round, or of the time before the first round. Workers that were not
/// members yet come last. Null if no worker failed in this time.
const ElasticEnd* main_failure(const ElasticReport& report) {
  const LaunchReport round = ends_of_last_round(report);
  const ProcessEnd* const member = main_failure(round);
  const ElasticEnd* newcomer = nullptr;
  for (const ElasticEnd& end : report.ends) {
    if (end.how != How::kFailed || end.round != std::ssize(report.rounds)) continue;
    if (member != nullptr && end.pid == member->pid) return &end;
    if (newcomer == nullptr) newcomer = &end;
  }
  return newcomer;
}

std::string last_lines(const ElasticReport& report) {
  const ElasticEnd* const main = main_failure(report);
  if (main == nullptr) return "";
  if (main->last_lines.empty()) return fmt::format("peal: {} wrote nothing\n", main->worker);
  std::string text = fmt::format("peal: the last lines of {}:\n", main->worker);
  for (const std::string& line : main->last_lines) text += fmt::format("  | {}\n", line);
  return text;
}

/// The failures that have not been reported.
std::string new_failures(const ElasticReport& report) {
  std::string text;
  std::size_t count = 0;
  for (const ElasticEnd& end : report.ends) {
    if (end.how != How::kFailed || end.is_shown) continue;
    if (++count <= kNamed) text += fmt::format("peal: {}\n", describe(end));
  }
  if (count > kNamed) text += fmt::format("peal: and {} more\n", count - kNamed);
  return text;
}

/// "1 worker", "2 workers"
std::string workers(std::ptrdiff_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

/// One line about a job that ended well.
std::string history(const ElasticReport& report) {
  if (report.rounds.empty()) {
    return "peal: no worker has asked for a round, so each ran alone: the command is not an "
           "elastic program; to run it as one group, give a fixed number of ranks\n";
  }
  const auto lost = std::ranges::count(report.ends, How::kFailed, &ElasticEnd::how);
  const auto removed = std::ranges::count(report.ends, How::kRemoved, &ElasticEnd::how);
  if (report.rounds.size() < 2 && lost == 0) return "";
  return fmt::format(
      "peal: the job ended well after {:.1f} s and {} round{}; {} failed on the way, "
      "and {} {} removed\n",
      seconds(report.after),
      report.rounds.size(),
      report.rounds.size() == 1 ? "" : "s",
      workers(lost),
      workers(removed),
      removed == 1 ? "was" : "were");
}

std::string cause(const ElasticReport& report) {
  if (report.output_closed) return "";  // silent like any program whose reader is gone
  if (report.guard_lost) {
    return fmt::format(
        "peal: the process that guards the workers was killed after {:.1f} s, so the kernel killed "
        "the workers\n",
        seconds(report.after));
  }
  if (report.signal != 0) {
    return fmt::format(
        "peal: ended by {} after {:.1f} s\n", signal_name(report.signal), seconds(report.after));
  }
  if (report.why_badly.empty()) return history(report);
  return fmt::format("peal: the elastic job failed after {:.1f} s, {}: {}\n",
                     seconds(report.after),
                     report.rounds.empty() ? "before the first round"
                                           : fmt::format("in round {}", report.rounds.size()),
                     report.why_badly) +
         new_failures(report) + last_lines(report);
}

}  // namespace

std::string describe(const ElasticEnd& end) {
  if (!end.lost.empty()) {
    return fmt::format("worker {}{} was lost with its host after {:.1f} s: {}",
                       end.worker,
                       end.rank ? fmt::format(" (rank {} of round {})", *end.rank, end.round) : "",
                       seconds(end.after),
                       end.lost);
  }
  return fmt::format("worker {} ({}pid {}) {} after {:.1f} s",
                     end.worker,
                     end.rank ? fmt::format("rank {} of round {}, ", *end.rank, end.round) : "",
                     end.pid,
                     status_text(as_process_end(end)),
                     seconds(end.after));
}

ProcessEnd as_process_end(const ElasticEnd& end) {
  const bool is_by_itself = end.how == How::kWell || end.how == How::kFailed;
  return {.rank = end.rank.value_or(-1),
          .pid = end.pid,
          .status = end.status,
          .after = end.after,
          .ended_by = is_by_itself ? EndedBy::kItself : EndedBy::kRequest,
          .out_of_memory = end.out_of_memory,
          .host = end.host,
          .lost = end.lost,
          .last_lines = end.last_lines};
}

LaunchReport ends_of_last_round(const ElasticReport& report) {
  LaunchReport round;
  round.post_mortem = report.post_mortem;
  for (const ElasticEnd& end : report.ends) {
    if (end.rank && end.round == std::ssize(report.rounds)) {
      round.ends.push_back(as_process_end(end));
    }
  }
  return round;
}

int exit_code(const ElasticReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (report.refusal != 0) return report.refusal;
  if (report.start_error != 0) return report.start_error == ENOENT ? 127 : 126;
  if (report.signal != 0) {
    const bool all_well =
        !report.ends.empty() && std::ranges::none_of(report.ends, failed, &ElasticEnd::status);
    return all_well ? 0 : kSignalBase + report.signal;
  }
  if (!report.why_badly.empty()) {
    const ElasticEnd* const main = main_failure(report);
    return main != nullptr ? shell_code(main->status) : 1;
  }
  return report.lost_output.empty() ? 0 : 1;
}

std::string describe(const ElasticReport& report) {
  std::string text = cause(report);
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  if (report.post_mortem) text += describe(*report.post_mortem);
  return text + describe(report.lost_output);
}

}  // namespace peal::launch
