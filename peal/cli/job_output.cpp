#include "peal/cli/job_output.h"

#include <signal.h>

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/printable.h"
#include "peal/cli/exit_codes.h"
#include "peal/cli/job_text.h"
#include "peal/cli/say.h"
#include "peal/launch/report.h"

namespace peal::cli {
namespace {

constexpr int kInterruptedByUser = launch::kSignalBase + SIGINT;

volatile sig_atomic_t has_interrupted = 0;

struct InterruptedByUser {};

/// While it lives, Ctrl-C sets a flag instead of ending the program.
class CatchCtrlC final {
 public:
  CatchCtrlC() {
    has_interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { has_interrupted = 1; };
    ::sigaction(SIGINT, &action, &before_);
  }
  ~CatchCtrlC() { ::sigaction(SIGINT, &before_, nullptr); }
  CatchCtrlC(const CatchCtrlC&) = delete;
  CatchCtrlC& operator=(const CatchCtrlC&) = delete;

  static void check() {
    if (has_interrupted != 0) throw InterruptedByUser();
  }

 private:
  struct sigaction before_ {};
};

bool has_several_ranks(const launch::jobs::Submission& submission) {
  return submission.roles.size() > 1 || submission.roles.front().nodes > 1 ||
         submission.roles.front().ranks_per_node > 1;
}

/// "[worker-1:3] "
std::string label_of(const launch::LogLine& line) {
  return line.rank ? fmt::format("[{}-{}:{}] ", line.role, line.index, *line.rank)
                   : fmt::format("[{}-{}] ", line.role, line.index);
}

}  // namespace

ShownLogs show_logs(launch::Runner& runner,
                    const launch::jobs::Submission& submission,
                    launch::LogQuery query) {
  ShownLogs shown;
  const CatchCtrlC guard;
  query.interrupt = CatchCtrlC::check;
  query.tell = [](const std::string& sentence) {
    say(fmt::format("peal: {}\n", printable_line(sentence)));
  };
  const bool is_labelled = has_several_ranks(submission);
  try {
    runner.logs(submission.id, query, [&](const launch::LogLine& line) {
      shown.has_lines = true;
      fmt::print("{}{}\n", is_labelled ? label_of(line) : "", line.text);
      std::fflush(stdout);
    });
  } catch (const Interrupted&) {
    say_job_goes_on(submission.id);
    shown.exit_code = kInterruptedByUser;
  }
  return shown;
}

void say_job_goes_on(const std::string& id) {
  say(fmt::format("peal: the job goes on; peal cancel {} ends it\n", id));
}

void say_end(const launch::JobStatus& status) {
  say(fmt::format("peal: {}\n", end_sentence(status)));
}

int stream(launch::Runner& runner, const launch::jobs::Submission& submission) {
  const int code =
      show_logs(runner, submission, {.follow = launch::Follow::kUntilTheEnd}).exit_code;
  if (code != 0) return code;
  const launch::JobStatus status = runner.status(submission.id);
  say_end(status);
  if (status.exit_code) return *status.exit_code;
  return status.state == launch::JobState::kSucceeded ? 0 : kFailure;
}

}  // namespace peal::cli
