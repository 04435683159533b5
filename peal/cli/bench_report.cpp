#include "peal/cli/bench_report.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/baseline.h"
#include "peal/bench/json_lines.h"
#include "peal/bench/plot.h"
#include "peal/bench/session.h"
#include "peal/bench/table.h"
#include "peal/bench/tune.h"
#include "peal/cli/config_command.h"
#include "peal/cli/exit_codes.h"
#include "peal/launch/rank_process.h"
#include "peal/rendezvous/interfaces.h"

namespace peal::cli {
namespace {

/// What the ranks would find wrong with it, each for itself when it has been started.
void check_environment(const bench::BenchOptions& options) {
  const Config config = checked_config(launch::process_variables());
  const bool by_tcp = options.transport == TransportChoice::kTcp && options.hosts.hosts == 0;
  if (!by_tcp) return;
  rendezvous::choose_addresses(
      rendezvous::own_interfaces(), config.interfaces, rendezvous::Reach::kThisHost);
}

/// An SVG, or a page with one in it where the name asks for that.
void write_plot(const std::string& path, const std::vector<bench::Result>& results) {
  std::string page = bench::draw(results);
  if (path.ends_with(".html")) {
    page = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>peal bench</title>\n" + page;
  }
  std::ofstream file(path);
  file << page << std::flush;
  if (!file) throw system_error("cannot write " + path, errno);
}

/// The text for PEAL_TUNE.
void tell_tuning(const std::string& path, const std::vector<bench::Result>& results) {
  const std::string text = bench::tune_text(results);
  fmt::print("\nPEAL_TUNE=\"{}\"\n", text);
  if (path.empty()) return;
  std::ofstream file(path);
  file << text << std::endl;
  if (!file) throw system_error("cannot write " + path, errno);
}

std::vector<bench::Reached> read_baseline(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw system_error("cannot read the baseline " + path, errno);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return bench::parse_baseline(text);
}

/// Whether nothing got worse; says what did.
bool holds(const std::vector<bench::Reached>& baseline,
           const std::vector<bench::Result>& results,
           double tolerance) {
  const auto comparison = bench::compare_with(baseline, bench::reached_by(results), tolerance);
  if (comparison.compared == 0) {
    throw Error(ErrorKind::kUsage,
                "the baseline has none of these ratios: measure with the peers that it has");
  }
  fmt::print(stderr,
             "{} ratios compared with the baseline, {} of them below {} times what they were\n{}",
             comparison.compared,
             comparison.worse.size(),
             tolerance,
             describe(comparison.worse));
  return comparison.worse.empty();
}

/// What a run writes while it goes on, and what it ends with.
class Reporter final {
 public:
  explicit Reporter(const BenchRequest& request)
      : columns_{bench::resolve_peers(request.options.peers)} {
    for (const std::string& algorithm : request.options.algorithms) {
      columns_.backend_width =
          std::max(columns_.backend_width, bench::tuned_backend(algorithm).size());
    }
    if (request.json_path.empty()) return;
    json_.open(request.json_path);
    if (!json_) throw system_error("cannot write " + request.json_path, errno);
  }

  bench::BenchSink sink() {
    return {.begin = [this](int ranks, const auto& lines) { begin(ranks, lines); },
            .results = [this](const auto& results) { show(results); },
            .incident = [this](const auto& incident) { tell(incident); }};
  }
  const std::vector<bench::Result>& results() const { return results_; }
  int exit_code() const { return failed_ ? kFailure : 0; }

 private:
  void begin(int ranks, const std::vector<std::string>& lines) {
    fmt::print(stderr, "{} ranks\n", ranks);
    for (const std::string& line : lines) fmt::print(stderr, "  {}\n", line);
    fmt::print("{}", bench::table_header(columns_));
    flush();
  }

  void show(const std::vector<bench::Result>& results) {
    for (const bench::Result& result : results) {
      fmt::print("{}", bench::table_row(result, columns_));
      if (json_.is_open()) json_ << bench::to_json_line(result) << std::flush;
    }
    flush();
    results_.insert(results_.end(), results.begin(), results.end());
  }

  /// Ends as other programs do when nobody reads on: as by SIGPIPE, which the guard has blocked.
  static void flush() {
    if (std::fflush(stdout) != 0 && errno == EPIPE) throw bench::Interrupted(SIGPIPE);
  }

  /// What a backend cannot do is said once for each operation and type.
  void tell(const bench::Incident& incident) {
    const bool is_failure = incident.kind != bench::Incident::Kind::kMissing;
    failed_ = failed_ || is_failure;
    if (!is_failure && !told_.insert(incident.backend + incident.text).second) return;
    // The program's name and that of its own backend are one.
    const std::string_view program = incident.backend == "peal" ? "" : "peal: ";
    fmt::print(stderr, "{}{}\n", program, describe(incident));
  }

  bench::Columns columns_;
  std::ofstream json_;
  std::set<std::string> told_;
  std::vector<bench::Result> results_;
  bool failed_ = false;
};

}  // namespace

int run(const BenchRequest& request) {
  check_environment(request.options);
  std::optional<std::vector<bench::Reached>> baseline;
  if (!request.baseline_path.empty()) {
    baseline = read_baseline(request.baseline_path);
    check_common_case(*baseline, bench::reached_by(bench::planned_results(request.options)));
  }
  if (!request.plot_path.empty()) write_plot(request.plot_path, {});  // better now than too late
  if (!request.tune_path.empty() && !std::ofstream(request.tune_path, std::ios::app)) {
    throw system_error("cannot write " + request.tune_path, errno);
  }
  Reporter reporter(request);
  try {
    bench::run(request.options, reporter.sink());
  } catch (const bench::Interrupted& interrupted) {
    return 128 + interrupted.signal();
  }
  if (!request.plot_path.empty()) write_plot(request.plot_path, reporter.results());
  if (!request.options.algorithms.empty()) tell_tuning(request.tune_path, reporter.results());
  if (baseline && !holds(*baseline, reporter.results(), request.tolerance)) return kFailure;
  return reporter.exit_code();
}

}  // namespace peal::cli
