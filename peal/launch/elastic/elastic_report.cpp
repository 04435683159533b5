#include "peal/launch/elastic/elastic_report.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "peal/base/printable.h"
#include "peal/system/process_state.h"

namespace peal::launch {
namespace {

constexpr int kSignalBase = 128;   // what shells add to a signal's number
constexpr std::size_t kNamed = 8;  // longer lists are cut

using How = ElasticEnd::How;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

int shell_code(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

const ElasticEnd* first_failure(const ElasticReport& report) {
  const auto found = std::ranges::find(report.ends, How::kFailed, &ElasticEnd::how);
  return found == report.ends.end() ? nullptr : &*found;
}

std::string failures(const ElasticReport& report) {
  std::string text;
  std::size_t count = 0;
  for (const ElasticEnd& end : report.ends) {
    if (end.how != How::kFailed) continue;
    if (++count <= kNamed) text += fmt::format("peal: {}\n", describe(end));
  }
  if (count > kNamed) text += fmt::format("peal: and {} more\n", count - kNamed);
  const ElasticEnd* first = first_failure(report);
  if (first == nullptr) return text;
  if (first->last_lines.empty())
    return text + fmt::format("peal: {} wrote nothing\n", first->worker);
  text += fmt::format("peal: the last lines of {}:\n", first->worker);
  for (const std::string& line : first->last_lines) text += fmt::format("  | {}\n", line);
  return text;
}

/// One line about a job that survived.
std::string history(const ElasticReport& report) {
  const auto lost = std::ranges::count(report.ends, How::kFailed, &ElasticEnd::how);
  const auto removed = std::ranges::count(report.ends, How::kRemoved, &ElasticEnd::how);
  if (report.rounds.size() < 2 && lost == 0) return "";
  return fmt::format(
      "peal: the job ended after {:.1f} s and {} rounds; {} workers failed on the way, {} were "
      "removed\n",
      seconds(report.after),
      report.rounds.size(),
      lost,
      removed);
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
  return fmt::format("peal: the elastic job failed after {:.1f} s, in round {}: {}\n",
                     seconds(report.after),
                     report.rounds.size(),
                     report.why_badly) +
         failures(report);
}

}  // namespace

std::string describe(const ElasticEnd& end) {
  return fmt::format("worker {} ({}pid {}) {} after {:.1f} s",
                     end.worker,
                     end.rank ? fmt::format("rank {} of round {}, ", *end.rank, end.round) : "",
                     end.pid,
                     describe_wait_status(end.status),
                     seconds(end.after));
}

int exit_code(const ElasticReport& report) {
  if (report.output_closed) return kSignalBase + SIGPIPE;
  if (report.guard_lost) return kSignalBase + SIGKILL;
  if (report.start_error != 0) return report.start_error == ENOENT ? 127 : 126;
  if (report.signal != 0) {
    const bool all_well =
        !report.ends.empty() && std::ranges::none_of(report.ends, failed, &ElasticEnd::status);
    return all_well ? 0 : kSignalBase + report.signal;
  }
  if (!report.why_badly.empty()) {
    const ElasticEnd* first = first_failure(report);
    return first != nullptr ? shell_code(first->status) : 1;
  }
  return report.lost_output.empty() ? 0 : 1;
}

std::string describe(const ElasticReport& report) {
  std::string text = cause(report);
  if (report.survivors > 0) {
    text += fmt::format("peal: {} processes hang in the kernel and could not be killed\n",
                        report.survivors);
  }
  for (const LostOutput& lost : report.lost_output) {
    text += fmt::format("peal: cannot write {}: {}; {} bytes of output are missing there\n",
                        printable(lost.where),
                        ::strerrordesc_np(lost.error),
                        lost.bytes);
  }
  return text;
}

}  // namespace peal::launch
