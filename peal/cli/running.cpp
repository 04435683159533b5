#include "peal/cli/running.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "peal/observe/flight_folder.h"
#include "peal/transport/presence.h"

namespace peal::cli {
namespace {

namespace fs = std::filesystem;
using Fate = observe::RankEnd::Fate;

/// Another process may have the number by now; it has not the file.
bool has_mapped(std::uint64_t pid, const std::string& path) {
  if (path.empty()) return false;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(" " + path)) return true;
  }
  return false;
}

/// Where the record of a rank would be; empty where there is nothing.
std::string record_at(const std::string& path, Rank rank) {
  std::error_code none;
  const bool is_folder = fs::is_directory(path, none);
  return fs::canonical(is_folder ? observe::flight_file_in(path, rank) : path, none);
}

}  // namespace

void add_running(std::span<const std::string> paths, observe::Dump& dump) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
  for (const observe::Flight& flight : dump.flights) {
    const bool is_running = std::ranges::any_of(paths, [&](const std::string& path) {
      return has_mapped(flight.pid, record_at(path, flight.rank));
    });
    if (!is_running || std::ranges::count(dump.ends, flight.rank, &observe::RankEnd::rank) > 0) {
      continue;
    }
    const transport::Presence presence =
        transport::presence_of_process(static_cast<std::int64_t>(flight.pid));
    const bool is_stopped = presence.state == transport::Presence::State::kStopped;
    dump.ends.push_back({.rank = flight.rank,
                         .pid = flight.pid,
                         .at = now,
                         .fate = is_stopped ? Fate::kStandsStill : Fate::kRuns,
                         .text = {}});
  }
}

}  // namespace peal::cli
