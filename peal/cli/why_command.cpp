#include "peal/cli/why_command.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/cli/running.h"
#include "peal/cli/say.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/observe/dump.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/transient_operations.h"
#include "peal/observe/why.h"

namespace peal::cli {
namespace {

constexpr const char* kWhyFooter = R"(
DUMP is a folder of records (as ranks keep them in PEAL_FLIGHT_DIR), the record
of one rank from such a folder, or a dump of several records in one file (as
peal run leaves it after a failed run). Of an elastic job, which has a folder
for each round, it is the last round. Without DUMP it is the folder in
PEAL_FLIGHT_DIR. Times are UTC, by the clock of the rank's host. The exit code
is 0 for any answer.

Examples:
  PEAL_FLIGHT_DIR=flights peal run -n 2 ./train
  peal why flights)";

/// Operations that are under way for this long count as blocked.
constexpr auto kMoment = std::chrono::milliseconds(200);

/// Where the newest records of the folder are: in `path`, or, if they are of an elastic job, in the
/// folder of a round.
std::string with_records(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  std::pair<fs::file_time_type, std::string> last = {fs::file_time_type::min(), path};
  for (fs::directory_iterator entry(path, unknown), end; !unknown && entry != end;
       entry.increment(unknown)) {
    const std::string name = entry->path().filename();
    const bool is_record = name.starts_with(observe::kRankPrefix);
    if (!is_record && !name.starts_with(observe::kRoundPrefix)) continue;
    last = std::max(last,
                    {entry->last_write_time(unknown), is_record ? path : entry->path().string()});
  }
  return last.second;
}

/// Errors: usage, if PEAL_FLIGHT_DIR is not set.
std::string folder_in_environment() {
  std::string folder = process_environment()(kFlightDirVariable).value_or("");
  if (!folder.empty()) return folder;
  throw Error(ErrorKind::kUsage,
              "no records given: name their place, as in: peal why flights; ranks keep records if "
              "PEAL_FLIGHT_DIR is set\nSee peal why --help");
}

/// Reads the records, and finds the ranks that still run. If the job runs, reads twice, to drop
/// operations that are under way only for a moment.
observe::Dump look_at(std::span<const std::string> paths) {
  observe::Dump dump = observe::read_dumps(paths);
  add_running(paths, dump);
  const auto runs = [](const observe::RankEnd& end) {
    return end.state == observe::RankEnd::State::kRuns;
  };
  if (std::ranges::none_of(dump.ends, runs)) return dump;
  std::this_thread::sleep_for(kMoment);
  observe::Dump later = observe::read_dumps(paths);
  observe::drop_transient_operations(dump.flights, later.flights);
  add_running(paths, later);
  return later;
}

/// {cause, ranks, sentence, evidence, skipped}
std::string to_json(const observe::Diagnosis& diagnosis, const observe::Dump& dump) {
  const nlohmann::ordered_json json = {{"cause", observe::name_of(diagnosis.cause)},
                                       {"ranks", diagnosis.ranks},
                                       {"sentence", diagnosis.sentence},
                                       {"evidence", diagnosis.evidence},
                                       {"skipped", dump.skipped}};
  // ASCII only, since a terminal may show the text.
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

WhyCommand::WhyCommand(CLI::App& app)
    : why_(app.add_subcommand("why", "Name the rank that caused a job to fail or to hang")) {
  why_->add_option("DUMP", request_.paths, "Where the records are");
  why_->add_flag("--json", request_.as_json, "Print the answer as one JSON object");
  why_->footer(kWhyFooter);
}

WhyRequest WhyCommand::request() const {
  WhyRequest request = request_;
  if (request.paths.empty()) request.paths = {folder_in_environment()};
  std::ranges::transform(request.paths, request.paths.begin(), with_records);
  return request;
}

int run(const WhyRequest& request) {
  const observe::Dump dump = look_at(request.paths);
  const observe::Diagnosis diagnosis = observe::diagnose(dump.flights, dump.ends);
  if (request.as_json) {
    fmt::print("{}\n", to_json(diagnosis, dump));
    return 0;
  }
  fmt::print("{}\n", diagnosis.sentence);
  for (const std::string& line : diagnosis.evidence) fmt::print("  {}\n", line);
  for (const std::string& line : dump.skipped) say(fmt::format("peal: skipped {}\n", line));
  return 0;
}

}  // namespace peal::cli
