#include "peal/init/init.h"

#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/init/connector.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/flight_recorder.h"
#include "peal/plan/plan.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal {
namespace {

/// In memory where there is no room for a file: no rank has to end for want of a record.
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

/// So that nobody trains with them by accident.
void announce(const FaultPlan& faults, const Report& report) {
  if (faults.empty()) return;
  report(Severity::kWarning,
         fmt::format("failures are injected into this job: {}", to_text(faults)));
}

}  // namespace

ProcessGroupPtr init_process_group(const InitOptions& options) {
  if (options.backend != "native") {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("there is no backend \"{}\"; there is: native", options.backend));
  }
  const Environment environment = process_environment();
  Config config = config_from(environment);
  if (options.timeout != kGroupTimeout) config.timeout = options.timeout;
  if (!options.faults.empty()) config.faults = options.faults;
  const Deadline deadline = Deadline::after(config.timeout);

  const rendezvous::Wish wish{
      .url = options.init_method, .rank = options.rank, .world_size = options.world_size};
  rendezvous::Meeting meeting =
      rendezvous::meet(wish, config, environment, deadline, options.report);
  const rendezvous::Identity identity = meeting.identity;
  auto recorder = make_recorder(config, meeting, options.report);
  observe::EndPlace ends = meeting.ends;
  const auto connector =
      std::make_shared<init::Connector>(std::move(meeting), config, options.report);
  check_ranks(config.faults, identity.world_size);
  announce(config.faults, options.report);

  native::Options native;
  native.recorder = std::move(recorder);
  native.ends = std::move(ends);
  native.rank = identity.rank;
  native.config = config;
  native.faults = config.faults;
  native.world_ranks.resize(static_cast<std::size_t>(identity.world_size));
  std::iota(native.world_ranks.begin(), native.world_ranks.end(), 0);
  native.connect = [connector](std::span<const Rank> ranks,
                               const std::string& group,
                               Deadline until,
                               const std::function<void()>& look) {
    return connector->connect(ranks, group, until, look);
  };
  return std::make_shared<ProcessGroup>(native::make_backend(std::move(native), deadline),
                                        ProcessGroup::Options{.timeout = config.timeout});
}

}  // namespace peal
