#include "peal/init/recording.h"

#include <exception>
#include <string>

#include <fmt/format.h>

#include "peal/base/text_file.h"
#include "peal/observe/flight_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/plan/plan.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/url.h"

namespace peal::init {
namespace {

/// Whether somebody goes on with the record that is there: this process, which is in a group, or
/// another one that has the same rank, as a helper that the rank has started has.
bool is_in_use(const std::string& path) {
  try {
    const observe::Flight flight = observe::parse_flight(read_text_file(path));
    return !flight.departure && observe::is_recorded_by(flight.pid, path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::shared_ptr<observe::FlightRecorder> make_recorder(const Config& config,
                                                       const rendezvous::Meeting& meeting,
                                                       const Report& report) {
  observe::RecorderOptions options;
  options.rank = meeting.identity.rank;
  options.world_size = meeting.identity.world_size;
  options.job = meeting.job;
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    options.algorithms.push_back(algorithm.name);
  }
  if (!config.flight_dir.empty()) {
    options.path = observe::flight_file_in(config.flight_dir, options.rank);
  }
  try {
    return observe::FlightRecorder::make(options);
  } catch (const Error& error) {
    if (options.path.empty() || error.kind() != ErrorKind::kResource) throw;
    report(Severity::kWarning,
           fmt::format("the last operations are not recorded in PEAL_FLIGHT_DIR: {}",
                       error.message()));
  }
  options.path.clear();
  return observe::FlightRecorder::make(options);
}

void record_failed_start(const rendezvous::Wish& wish,
                         const Environment& environment,
                         const Error& why) noexcept {
  try {
    const std::string folder = environment("PEAL_FLIGHT_DIR").value_or("");
    if (folder.empty()) return;
    const rendezvous::Launch launch =
        rendezvous::read_launch(wish, rendezvous::parse_url(wish.url), environment);
    const rendezvous::Identity& self = launch.identity;
    const std::string path = observe::flight_file_in(folder, self.rank);
    if (is_in_use(path)) return;
    const auto recorder = observe::FlightRecorder::make({.rank = self.rank,
                                                         .world_size = self.world_size,
                                                         .job = launch.job,
                                                         .path = path,
                                                         .groups = 1,
                                                         .operations = 1});
    recorder->failed(0, why);
  } catch (const std::exception&) {
    // The error itself reaches the caller in any case.
  }
}

}  // namespace peal::init
