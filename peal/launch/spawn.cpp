#include "peal/launch/spawn.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include <fmt/format.h>

#include "peal/config/config.h"
#include "peal/launch/cores.h"
#include "peal/launch/flights.h"
#include "peal/launch/inherited.h"
#include "peal/launch/job_context.h"
#include "peal/launch/launcher.h"
#include "peal/launch/outcome.h"
#include "peal/launch/outputs.h"
#include "peal/launch/post_mortem.h"
#include "peal/launch/rank_command.h"
#include "peal/launch/spawn_report.h"
#include "peal/system/cpus.h"
#include "peal/system/process_state.h"
#include "peal/system/standard_files.h"
#include "peal/system/thread_count.h"

namespace peal {

SpawnError::SpawnError(const Error& error, std::vector<std::optional<Error>> errors)
    : Error(error), errors_(std::move(errors)) {}

namespace launch {
namespace {

/// How long to wait for the end of threads that have been joined.
constexpr Timeout kLastThreads{500};
constexpr std::string_view kGraceOption = "SpawnOptions::grace";

void check_spawn(int ranks, const SpawnOptions& options) {
  if (ranks < 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("spawn cannot start {} ranks: pass 1 or more", ranks));
  }
  if (options.grace < Timeout(0)) throw Error(ErrorKind::kUsage, "spawn: the grace is negative");
  if (has_one_thread(Deadline::after(kLastThreads))) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("spawn forks this process, which has {} threads, and a fork copies only "
                          "one. Call spawn at the beginning of main: before the first tensor "
                          "operation, which starts threads, and outside of a process group",
                          thread_count()));
}

void flush_output() {
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

/// Ends a rank whose function calls std::exit. The exit handlers of the program do not run, because
/// they belong to the caller of spawn.
void end_rank(int code, void*) {
  flush_output();
  ::_exit(code);
}

/// OpenMP has read OMP_NUM_THREADS at the start of the program, before the fork.
void set_openmp_threads(int threads) {
  void* const found = ::dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (found != nullptr) reinterpret_cast<void (*)(int)>(found)(threads);
}

/// The life of a rank's process. Returns its exit code.
int live_as_rank(Rank rank,
                 const std::function<std::string(Rank)>& function,
                 const OutcomeFile& file) {
  ::on_exit(end_rank, nullptr);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a crash must not lose the lines before it
  Outcome outcome = outcome_of(function, rank);
  try {
    file.write(outcome);
  } catch (const Error& error) {
    outcome = {.error = error};  // no memory for the result
    file.write(outcome);
  }
  flush_output();
  return outcome.error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/// Without this, the program would not learn that ranks lost their work: after a signal, spawn does
/// not return.
void warn_of_kills(const LaunchReport& report, const Report& warn) {
  if (const std::string kills = describe_kills(report, kGraceOption); !kills.empty()) warn(kills);
}

/// Throws if the launch itself was ended, and not only a rank.
void check_launch(const LaunchReport& report) {
  if (report.signal != 0) {
    ::raise(report.signal);  // returns if the program handles or ignores the signal
    const std::string kills = describe_kills(report, kGraceOption);
    throw Error(ErrorKind::kAborted,
                fmt::format("spawn was ended by {}{}{}",
                            signal_name(report.signal),
                            kills.empty() ? "" : "; ",
                            kills),
                {.cause = ErrorCause::kInterrupted});
  }
  if (report.start_failure) {
    throw system_error(fmt::format("spawn cannot start rank {}", report.start_failure->rank),
                       report.start_failure->error);
  }
  if (report.guard_lost) {
    throw Error(ErrorKind::kPeerLost,
                "the process that guards the ranks was killed, and the ranks with it");
  }
  if (report.output_closed) {
    throw Error(ErrorKind::kResource,
                "the reader of the standard output has closed it, so spawn has ended the ranks");
  }
}

void warn_of_lost_output(const LaunchReport& report, const Report& warn) {
  for (const LostOutput& lost : report.lost_output) {
    warn(fmt::format("spawn cannot write {}: {}; {} bytes of output are missing there",
                     lost.where,
                     ::strerrordesc_np(lost.error),
                     lost.bytes));
  }
}

/// The ranks as processes, from the start to the end.
class FunctionLaunch final {
 public:
  FunctionLaunch(int ranks, const SpawnOptions& options);
  /// The report, with the cause of a failure.
  LaunchReport run(const std::function<std::string(Rank)>& function);
  Outcomes outcomes() const;

 private:
  LaunchOptions options_;
  Variables inherited_ = without_those_of_a_rank(process_variables());
  Flights flights_{inherited_};
  NewJobContext made_ = make_job_context();
  std::vector<CoreShare> shares_;
  std::vector<OutcomeFile> files_;
};

FunctionLaunch::FunctionLaunch(int ranks, const SpawnOptions& options)
    : shares_(divide_cores(usable_cores(), ranks, cpu_quota())),
      files_(static_cast<std::size_t>(ranks)) {
  options_.ranks = ranks;
  options_.labels = options.labels;
  options_.binding = options.binding;
  options_.grace = options.grace;
  if (!flights_.problem().empty()) {
    options.report(fmt::format("the ranks keep no records: {}", flights_.problem()));
  }
}

LaunchReport FunctionLaunch::run(const std::function<std::string(Rank)>& function) {
  const Target out = target_of(STDOUT_FILENO);
  made_.job.flights = flights_.private_folder();
  made_.job.terminal_width = line_width(options_, out);
  const auto ranks = plan_ranks(options_, made_.job, "", shares_, inherited_);
  const bool has_threads = inherited_.contains("OMP_NUM_THREADS");
  const RankFunction body = [&](Rank rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (!has_threads) set_openmp_threads(shares_[index].threads);
    return live_as_rank(rank, function, files_[index]);
  };
  SignalReader signals;
  LaunchReport report = launch::run(options_, ranks, out, target_of(STDERR_FILENO), signals, body);
  report.post_mortem = examine(report, flights_.place(), made_.job.id, options_);
  return report;
}

Outcomes FunctionLaunch::outcomes() const {
  Outcomes outcomes;
  for (const OutcomeFile& file : files_) outcomes.push_back(file.read());
  return outcomes;
}

}  // namespace

std::vector<std::string> run_function(int ranks,
                                      const std::function<std::string(Rank)>& function,
                                      Returns returns,
                                      const SpawnOptions& options) {
  check_spawn(ranks, options);
  flush_output();  // the ranks would flush their copies of these buffers too
  open_standard_files();
  FunctionLaunch launch(ranks, options);
  LaunchReport report = launch.run(function);
  warn_of_lost_output(report, options.report);
  warn_of_kills(report, options.report);
  check_launch(report);
  const Outcomes outcomes = launch.outcomes();
  add_victims(outcomes, report);
  auto errors = errors_of(report, outcomes, returns);
  if (std::ranges::any_of(errors, [](const auto& error) { return error.has_value(); })) {
    throw spawn_error(report, std::move(errors));
  }
  std::vector<std::string> results;
  for (const auto& outcome : outcomes) results.push_back(outcome ? outcome->result : "");
  return results;
}

}  // namespace launch
}  // namespace peal
