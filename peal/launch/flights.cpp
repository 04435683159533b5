#include "peal/launch/flights.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/record_holder.h"
#include "peal/system/own_file.h"

namespace peal::launch {

namespace {

void remove_records_of_own_ranks(const std::string& folder, const LaunchOptions& options) {
  const Rank first = first_rank_of(options);
  for (Rank rank = first; rank < first + options.ranks; ++rank) {
    observe::remove_end_file(folder, rank);
    const std::string record = observe::flight_file_in(folder, rank);
    if (observe::holder_of_record(record) == observe::RecordHolder::kNobody) {
      remove_own_file(record);
    }
  }
}

}  // namespace

Flights::Flights(const Variables& variables, const LaunchOptions& options) {
  if (const auto named = variables.find(kFlightDirVariable); named != variables.end()) {
    folder_ = named->second;
    if (folder_.empty()) return;
    ::mkdir(folder_.c_str(), 0700);  // as the ranks would do
    if (::access(folder_.c_str(), W_OK | X_OK) != 0) {
      problem_ = system_error(kFlightDirVariable + (" names " + folder_), errno).message();
    }
    if (options.node.is_only()) {
      observe::remove_end_files(folder_);
    } else {
      remove_records_of_own_ranks(folder_, options);
    }
    return;
  }
  try {
    private_.emplace(fmt::format("peal-{}.", ::geteuid()));
    folder_ = private_->path();
  } catch (const Error& error) {
    problem_ = error.message();
  }
}

std::string Flights::private_folder() const { return private_ ? folder_ : ""; }

observe::EndPlace end_place_of(const std::vector<RankCommand>& ranks) {
  if (ranks.empty()) return {};
  const Variables& environment = ranks.front().environment;
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  return {.folder = value(kFlightDirVariable), .job = value("PEAL_JOB")};
}

void leave_end(const observe::EndPlace& place, const ProcessEnd& end) {
  if (!place.is_any()) return;
  try {
    observe::write_end_file(place, record_of(end, observe::wall_now()));
  } catch (const Error&) {
    // The report says in any case how the rank ended.
  }
}

}  // namespace peal::launch
