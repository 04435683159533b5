#include "peal/init/recording.h"

#include <exception>
#include <string>

#include <fmt/format.h>

#include "peal/observe/flight_folder.h"
#include "peal/observe/record_holder.h"
#include "peal/plan/plan.h"
#include "peal/rendezvous/launcher_environment.h"
#include "peal/rendezvous/url.h"

namespace peal::init {
namespace {

using observe::RecordHolder;

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
    if (observe::holder_of_record(options.path) == RecordHolder::kAnother) {
      throw Error(
          ErrorKind::kResource,
          fmt::format("{} is the record of another process, which is still running; give each "
                      "job its own folder",
                      options.path));
    }
    return observe::FlightRecorder::make(options);
  } catch (const Error& error) {
    if (options.path.empty() || error.kind() != ErrorKind::kResource) throw;
    report(fmt::format(
        "the last operations are not recorded in {}: {}", kFlightDirVariable, error.message()));
  }
  options.path.clear();
  return observe::FlightRecorder::make(options);
}

void record_failed_start(const rendezvous::MeetRequest& request,
                         const Environment& environment,
                         const Error& why) noexcept {
  try {
    const std::string folder = environment(kFlightDirVariable).value_or("");
    if (folder.empty()) return;
    const rendezvous::LauncherEnvironment launch = rendezvous::read_launcher_environment(
        request, rendezvous::parse_url(request.url), environment);
    const rendezvous::Identity& self = launch.identity;
    const std::string path = observe::flight_file_in(folder, self.rank);
    if (observe::holder_of_record(path) != RecordHolder::kNobody) return;
    const auto recorder = observe::FlightRecorder::make({.rank = self.rank,
                                                         .world_size = self.world_size,
                                                         .job = launch.job,
                                                         .path = path,
                                                         .groups = 1,
                                                         .operations = 1});
    recorder->failed(0, why);
  } catch (const std::exception&) {
    // The caller gets the error itself in any case.
  }
}

}  // namespace peal::init
