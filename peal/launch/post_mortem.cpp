#include "peal/launch/post_mortem.h"

#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/dump_place.h"
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

Records read_records(const std::string& folder, const std::string& job, int ranks) {
  Records records;
  for (Rank rank = 0; rank < ranks; ++rank) {
    add_flight(observe::flight_file_in(folder, rank), job, records);
    if (const auto end = observe::try_read_end_file({folder, job}, rank))
      records.ends.push_back(*end);
  }
  return records;
}

}  // namespace

std::optional<PostMortem> examine(const LaunchReport& report,
                                  const Flights& flights,
                                  const std::string& job,
                                  const LaunchOptions& options) {
  if (all_went_well(report) || report.output_closed || flights.folder().empty()) {
    return std::nullopt;
  }
  PostMortem found;
  try {
    const Records records = read_records(flights.folder(), job, options.ranks);
    if (records.flights.empty()) return std::nullopt;
    if (main_failure(report) != nullptr) {
      const observe::Diagnosis diagnosis = observe::diagnose(records.flights, records.ends);
      found.sentence = diagnosis.sentence;
      found.causes = diagnosis.ranks;
      for (const observe::Flight& flight : records.flights) {
        if (observe::lost_another(flight)) found.victims.push_back(flight.rank);
      }
    }
    if (flights.private_folder().empty()) {
      found.records = flights.folder();
    } else {
      const std::string path = place_for_dump(options.log_directory, job, folder_of_the_system());
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
