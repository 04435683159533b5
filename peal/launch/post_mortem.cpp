#include "peal/launch/post_mortem.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/dump_place.h"
#include "peal/launch/error_text.h"
#include "peal/launch/other_node.h"
#include "peal/observe/dump.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/why.h"
#include "peal/system/own_file.h"
#include "peal/system/private_folder.h"

namespace peal::launch {
namespace {

struct Records {
  std::vector<std::string> files;  // the bytes of the flights
  std::vector<observe::Flight> flights;
  std::vector<observe::RankEnd> ends;
};

/// Adds the flight if it belongs to `job`. A folder that the user has named may hold other jobs.
void add_flight(const std::string& path, const std::string& job, Records& records) {
  try {
    std::string bytes = read_own_file(path);
    observe::Flight flight = observe::parse_flight(bytes);
    if (flight.job != job) return;
    records.files.push_back(std::move(bytes));
    records.flights.push_back(std::move(flight));
  } catch (const Error&) {
    // The rank has no record, or was killed before the record was complete.
  }
}

/// Reads the records of all nodes, because nodes may share a folder that the user has named.
Records read_records(const std::string& folder, const std::string& job, int ranks) {
  Records records;
  for (Rank rank = 0; rank < ranks; ++rank) {
    add_flight(observe::flight_file_in(folder, rank), job, records);
    if (const auto end = observe::try_read_end_file({folder, job}, rank))
      records.ends.push_back(*end);
  }
  return records;
}

/// `because of an uncaught std::runtime_error: "no luck"`, from the lines that the C++ runtime
/// writes before it calls abort(); empty without such lines.
std::string uncaught_exception(std::span<const std::string> lines) {
  constexpr std::string_view kWhat = "  what():  ";
  const auto line = std::ranges::find_if(
      lines, [&](const std::string& each) { return each.starts_with(kUncaughtException); });
  if (line == lines.end()) return "";
  const std::string type =
      line->substr(kUncaughtException.size(), line->rfind('\'') - kUncaughtException.size());
  std::string text = "because of an uncaught " + type;
  if (const auto next = line + 1; next != lines.end() && next->starts_with(kWhat)) {
    text += fmt::format(": \"{}\"", next->substr(kWhat.size()));
  }
  return printable_line(text);
}

/// Completes "was killed by SIGABRT" with the exception that a rank did not catch.
void name_exceptions(const LaunchReport& report, std::vector<observe::RankEnd>& ends) {
  for (observe::RankEnd& end : ends) {
    const auto process = std::ranges::find(report.ends, end.rank, &ProcessEnd::rank);
    if (process == report.ends.end() || !WIFSIGNALED(process->status)) continue;
    if (WTERMSIG(process->status) != SIGABRT) continue;
    const std::string exception = uncaught_exception(process->last_lines);
    if (!exception.empty()) end.text += " " + exception;
  }
}

/// Whether the records show no more than the output: a rank has left by an exception before any
/// operation, as for a wrong argument of the program.
bool shows_nothing_new(const observe::Diagnosis& diagnosis,
                       std::span<const observe::Flight> flights) {
  return diagnosis.cause == observe::Diagnosis::Cause::kException &&
         std::ranges::all_of(flights, [](const observe::Flight& flight) {
           return flight.operations.empty() &&
                  (!flight.first_error || observe::lost_another(flight));
         });
}

/// If the cause is on another node, no rank of this node is one.
void name_other_node(const observe::Diagnosis& diagnosis,
                     std::span<const observe::Flight> flights,
                     const LaunchOptions& options,
                     PostMortem& found) {
  const auto cause = cause_on_other_node(diagnosis, flights, options);
  if (!cause) return;
  found.sentence = cause->sentence;
  found.causes = {cause->rank};
  found.victims = cause->victims;
  found.other_node = cause->node;
}

}  // namespace

std::optional<PostMortem> examine(const LaunchReport& report,
                                  const RecordPlace& place,
                                  const std::string& job,
                                  const LaunchOptions& options) {
  if (all_went_well(report) || handled_signal(report) != 0 || report.output_closed ||
      place.folder.empty()) {
    return std::nullopt;
  }
  PostMortem found;
  try {
    Records records = read_records(place.folder, job, world_size_of(options));
    if (records.flights.empty()) return std::nullopt;
    name_exceptions(report, records.ends);
    if (main_failure(report) != nullptr) {
      const observe::Diagnosis diagnosis = observe::diagnose(records.flights, records.ends);
      found.causes = diagnosis.ranks;
      for (const observe::Flight& flight : records.flights) {
        if (observe::lost_another(flight)) found.victims.push_back(flight.rank);
      }
      if (shows_nothing_new(diagnosis, records.flights)) return found;
      found.sentence = diagnosis.sentence;
      name_other_node(diagnosis, records.flights, options, found);
    }
    if (!place.is_private) {
      found.records = place.folder;
    } else {
      const std::string path =
          place_for_dump(options.log_directory, job, folder_of_the_system(), options.node);
      observe::write_dump(path, records.files, records.ends);
      found.records = path;
    }
  } catch (const std::exception&) {
    found.problem = fmt::format("the records of the ranks could not be kept: {}",
                                current_error("reading the records").message());
  }
  return found;
}

}  // namespace peal::launch
