#include "peal/cli/running.h"

#include <algorithm>
#include <filesystem>

#include "peal/observe/flight.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/system/process_state.h"

namespace peal::cli {
namespace {

namespace fs = std::filesystem;
using State = observe::RankEnd::State;

/// The path where the record of a rank would be.
std::string record_at(const std::string& path, Rank rank) {
  std::error_code none;
  return fs::is_directory(path, none) ? observe::flight_file_in(path, rank) : path;
}

}  // namespace

void add_running(std::span<const std::string> paths, observe::Dump& dump) {
  const observe::WallTime now = observe::wall_now();
  for (const observe::Flight& flight : dump.flights) {
    const bool is_running = std::ranges::any_of(paths, [&](const std::string& path) {
      return observe::is_recorded_by(flight.pid, record_at(path, flight.rank));
    });
    if (!is_running || std::ranges::count(dump.ends, flight.rank, &observe::RankEnd::rank) > 0) {
      continue;
    }
    const ProcessState state = state_of_process(static_cast<std::int64_t>(flight.pid));
    if (state == ProcessState::kZombie || state == ProcessState::kMissing) continue;
    dump.ends.push_back({.rank = flight.rank,
                         .pid = flight.pid,
                         .at = now,
                         .state = state == ProcessState::kStopped ? State::kStopped : State::kRuns,
                         .text = {}});
  }
}

}  // namespace peal::cli
