#include "peal/cli/bench_report.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/size_text.h"
#include "peal/bench/baseline.h"
#include "peal/bench/json_lines.h"
#include "peal/bench/session.h"
#include "peal/bench/table.h"
#include "peal/bench/tune.h"
#include "peal/cli/config_command.h"
#include "peal/cli/exit_codes.h"
#include "peal/cli/output_file.h"
#include "peal/cli/say.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/launch/rank_command.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/system/text_file.h"

namespace peal::cli {
namespace {

/// Checks the environment here, so that a wrong value is reported once and not by each rank. Also
/// warns of unknown variables, which the ranks ignore.
void check_environment(const bench::BenchOptions& options) {
  const launch::Variables variables = launch::process_variables();
  const Config config = checked_config(variables);
  say(warn_of_unknown(variables));
  const bool by_tcp = options.transport == TransportChoice::kTcp && options.hosts.hosts == 0;
  if (!by_tcp) return;
  rendezvous::choose_addresses(
      rendezvous::own_interfaces(), config.interfaces, rendezvous::Reach::kThisHost);
}

plan::Table tuning(const std::vector<bench::Result>& results) {
  return bench::tune(results, config_from(process_environment()).stage);
}

/// Ends like other programs if the reader of the table is gone: as by SIGPIPE, which the guard
/// blocks.
void flush_table() {
  if (std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw bench::SignalReceived(SIGPIPE);
  throw system_error("cannot write the table", errno);
}

/// Prints the text for PEAL_TUNE and writes it to the file.
void tell_tuning(OutputFile& file, const std::vector<bench::Result>& results) {
  if (results.empty()) return;
  const plan::Table table = tuning(results);
  if (table.rows.empty()) fmt::print("\n# no algorithm is faster than the built-in choice\n");
  fmt::print("\nPEAL_TUNE=\"{}\"\n", plan::to_text(table, ";"));
  flush_table();
  file.append("# by peal bench --tune: where an algorithm is faster than the built-in choice\n" +
              plan::to_text(table, "\n") + "\n");
}

/// Prints the partial result of an interrupted run; does not change the file.
void tell_partial_tuning(const bench::Progress& last, const std::vector<bench::Result>& results) {
  if (results.empty()) return;
  fmt::print("\n# partial: interrupted in case {} of {} with {} ranks\nPEAL_TUNE=\"{}\"\n",
             last.done + 1,
             last.cases,
             last.next.ranks,
             plan::to_text(tuning(results), ";"));
  flush_table();
}

std::vector<bench::Reached> read_baseline(const std::string& path) {
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("the baseline {} {}", path, error.message()));
  }
  return bench::parse_baseline(text);
}

void tell(const bench::Comparison& comparison, double tolerance) {
  say(
      fmt::format("{} ratios compared with the baseline, {} of them are below {} times their "
                  "baseline value\n{}",
                  comparison.compared,
                  comparison.worse.size(),
                  tolerance,
                  describe(comparison.worse)));
}

/// A run that takes longer shows its progress.
constexpr double kLong = 10;

/// "case 3 of 18, all_reduce of 64 KiB; about 31 s left": fits into a line of any terminal.
std::string describe_progress(const bench::Progress& progress) {
  const double left = progress.seconds_left;
  const std::string time =
      left < 100 ? fmt::format("{:.0f} s", left) : fmt::format("{:.0f} min", left / 60);
  return fmt::format("case {} of {}, {} of {}; about {} left",
                     progress.done + 1,
                     progress.cases,
                     name_of(progress.next.op),
                     size_text(bytes_of(progress.next), SizeStyle::kLong),
                     time);
}

/// Writes the output of a run, and decides its exit code.
class Reporter final {
 public:
  explicit Reporter(const BenchRequest& request)
      : columns_{bench::resolve_peers(request.options.peers)},
        json_(std::in_place, request.json_path) {
    for (const std::string& algorithm : request.options.algorithms) {
      columns_.backend_width =
          std::max(columns_.backend_width, bench::tuned_backend(algorithm).size());
    }
  }

  bench::BenchSink sink() {
    return {.begin = [this](int ranks, const auto& lines) { begin(ranks, lines); },
            .progress = [this](const auto& progress) { look_ahead(progress); },
            .results = [this](const auto& results) { show(results); },
            .incident = [this](const auto& incident) { tell(incident); }};
  }
  const std::vector<bench::Result>& results() const { return results_; }
  const bench::Progress& progress() const { return progress_; }
  int exit_code() const { return failed_ ? kFailure : 0; }
  /// Removes the progress line from the terminal.
  void clear_progress() {
    if (std::exchange(shows_progress_, false)) say("\r\x1b[K");
  }

 private:
  void begin(int ranks, const std::vector<std::string>& lines) {
    say(fmt::format("{} ranks\n", ranks));
    for (const std::string& line : lines) say(fmt::format("  {}\n", line));
    fmt::print("{}", bench::table_header(columns_));
    flush_table();
  }

  /// Shows the progress of a long run: on a terminal a line that is replaced, else a line that
  /// stays.
  void look_ahead(const bench::Progress& progress) {
    progress_ = progress;
    is_long_ = is_long_ || progress.seconds_left > kLong;
    if (!is_long_) return;
    const std::string text = describe_progress(progress);
    shows_progress_ = ::isatty(STDERR_FILENO) != 0;
    say(fmt::format("{}{}", text, shows_progress_ ? "" : "\n"));
  }

  void show(const std::vector<bench::Result>& results) {
    clear_progress();
    for (const bench::Result& result : results) {
      fmt::print("{}", bench::table_row(result, columns_));
    }
    keep(results);
    flush_table();
    results_.insert(results_.end(), results.begin(), results.end());
  }

  /// A full file does not end the run: later results are still in the table.
  void keep(const std::vector<bench::Result>& results) try {
    for (const bench::Result& result : results) {
      if (json_) json_->append(bench::to_json_line(result));
    }
  } catch (const Error& error) {
    say(fmt::format("peal: {}; from here on, results are not in it\n", error.message()));
    json_.reset();
    failed_ = true;
  }

  /// Reports an incident. A missing feature of a backend is reported once for each operation and
  /// type.
  void tell(const bench::Incident& incident) {
    clear_progress();
    const bool is_failure = incident.kind != bench::Incident::Kind::kMissing;
    failed_ = failed_ || is_failure;
    if (!is_failure && !reported_.insert(incident.backend + incident.text).second) return;
    // The program and its backend have the same name.
    const std::string_view program = incident.backend == "peal" ? "" : "peal: ";
    say(fmt::format("{}{}\n", program, describe(incident)));
  }

  bench::Columns columns_;
  std::optional<OutputFile> json_;
  std::set<std::string> reported_;
  std::vector<bench::Result> results_;
  bench::Progress progress_;
  bool is_long_ = false;
  bool shows_progress_ = false;
  bool failed_ = false;
};

/// Compares with the baseline, reports worse ratios, and returns the exit code.
int compare(const std::vector<bench::Reached>& baseline,
            const Reporter& reporter,
            double tolerance) {
  const auto comparison =
      bench::compare_with(baseline, bench::reached_by(reporter.results()), tolerance);
  if (comparison.compared > 0) {
    tell(comparison, tolerance);
  } else if (reporter.exit_code() == 0) {
    throw Error(ErrorKind::kUsage,
                "the baseline has none of these ratios: measure with the peers of the baseline");
  }
  return comparison.worse.empty() ? reporter.exit_code() : kFailure;
}

}  // namespace

int run(const BenchRequest& request) {
  check_environment(request.options);
  std::optional<std::vector<bench::Reached>> baseline;
  if (!request.baseline_path.empty()) {
    baseline = read_baseline(request.baseline_path);
    check_common_case(*baseline, bench::reached_by(bench::planned_results(request.options)));
  }
  OutputFile tune(request.tune_path);  // a file that cannot be written is reported before the run
  Reporter reporter(request);
  const std::vector<bench::Result>& results = reporter.results();
  try {
    bench::run(request.options, reporter.sink());
  } catch (const bench::SignalReceived& interrupted) {
    reporter.clear_progress();
    const bool has_reader = interrupted.signal() != SIGPIPE;
    if (has_reader && !request.options.algorithms.empty()) {
      tell_partial_tuning(reporter.progress(), results);
    }
    return 128 + interrupted.signal();
  }
  if (!request.options.algorithms.empty()) tell_tuning(tune, results);
  return baseline ? compare(*baseline, reporter, request.tolerance) : reporter.exit_code();
}

}  // namespace peal::cli
