#include "peal/launch/flights.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"

namespace peal::launch {

Flights::Flights(const Variables& variables) {
  if (const auto named = variables.find(kFlightDirVariable); named != variables.end()) {
    folder_ = named->second;
    if (folder_.empty()) return;
    ::mkdir(folder_.c_str(), 0700);  // as the ranks would do
    if (::access(folder_.c_str(), W_OK | X_OK) != 0) {
      problem_ = system_error(kFlightDirVariable + (" names " + folder_), errno).message();
    }
    observe::remove_end_files(folder_);
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
