#include "peal/cli/why_command.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/cli/running.h"
#include "peal/cli/say.h"
#include "peal/observe/dump.h"
#include "peal/observe/passing.h"
#include "peal/observe/why.h"

namespace peal::cli {
namespace {

constexpr const char* kFooter = R"(
DUMP is a folder of records, as ranks keep them in PEAL_FLIGHT_DIR, or the
record of one rank from there, or a dump of several in one file, as peal run
leaves it of a run that fails. Without any it is the folder that PEAL_FLIGHT_DIR
names. Times are UTC, each by the clock of
the rank's host. The answer ends with 0, whatever it is.

Examples:
  PEAL_FLIGHT_DIR=flights peal run -n 2 ./train
  peal why flights)";

/// What is under way for so long is worth a word.
constexpr auto kMoment = std::chrono::milliseconds(200);

/// The records, and who of the ranks is still there. Of a job that runs, two looks tell what stands
/// still from what is passing.
observe::Dump look_at(std::span<const std::string> paths) {
  observe::Dump dump = observe::read_dumps(paths);
  add_running(paths, dump);
  const auto runs = [](const observe::RankEnd& end) {
    return end.fate == observe::RankEnd::Fate::kRuns;
  };
  if (std::ranges::none_of(dump.ends, runs)) return dump;
  std::this_thread::sleep_for(kMoment);
  observe::Dump later = observe::read_dumps(paths);
  observe::drop_passing(dump.flights, later.flights);
  add_running(paths, later);
  return later;
}

/// cause, ranks, sentence, evidence, skipped.
std::string to_json(const observe::Diagnosis& diagnosis, const observe::Dump& dump) {
  const nlohmann::ordered_json json = {{"cause", observe::name_of(diagnosis.cause)},
                                       {"ranks", diagnosis.ranks},
                                       {"sentence", diagnosis.sentence},
                                       {"evidence", diagnosis.evidence},
                                       {"skipped", dump.skipped}};
  // A terminal may be what shows it, so all of it is ASCII.
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

WhyCommand::WhyCommand(CLI::App& app)
    : why_(app.add_subcommand("why", "Say who caused a job to fail or to stand still")) {
  why_->add_option("DUMP", request_.paths, "Where the records are");
  why_->add_flag("--json", request_.as_json, "Print the answer as one JSON object");
  why_->footer(kFooter);
}

WhyRequest WhyCommand::request() const {
  WhyRequest request = request_;
  if (!request.paths.empty()) return request;
  const std::string folder = process_environment()("PEAL_FLIGHT_DIR").value_or("");
  if (folder.empty()) {
    throw Error(ErrorKind::kUsage,
                "of what? Say where the records are, as in: peal why flights; ranks keep them "
                "where PEAL_FLIGHT_DIR is set\nSee peal why --help");
  }
  request.paths = {folder};
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
