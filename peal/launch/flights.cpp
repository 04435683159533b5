#include "peal/launch/flights.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/observe/end_file.h"

namespace peal::launch {
namespace {

constexpr const char* kVariable = "PEAL_FLIGHT_DIR";

std::string prefix() { return fmt::format("peal-{}.", ::geteuid()); }

observe::WallTime now() {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

}  // namespace

Flights::Flights(const Variables& variables) {
  if (const auto named = variables.find(kVariable);
      named != variables.end() && !is_of_a_launch(named->second)) {
    folder_ = named->second;
    if (!folder_.empty()) observe::remove_end_files(folder_);
    return;
  }
  try {
    private_.emplace(prefix());
    folder_ = private_->path();
  } catch (const Error& error) {
    problem_ = error.message();
  }
}

bool is_of_a_launch(const std::string& folder) {
  return std::filesystem::path(folder).filename().string().starts_with(prefix());
}

std::string Flights::private_folder() const { return private_ ? folder_ : ""; }

std::string flight_folder_of(const std::vector<RankProcess>& ranks) {
  if (ranks.empty()) return "";
  const Variables& environment = ranks.front().environment;
  const auto named = environment.find(kVariable);
  return named == environment.end() ? "" : named->second;
}

void leave_end(const std::string& folder, const RankEnd& end) {
  if (folder.empty()) return;
  try {
    observe::write_end_file(folder, record_of(end, now()));
  } catch (const Error&) {
    // The report says how it ended in any case.
  }
}

}  // namespace peal::launch
