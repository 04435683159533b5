#include "peal/init/init.h"

#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/config/stop_flag_path.h"
#include "peal/init/connector.h"
#include "peal/init/own_job.h"
#include "peal/init/recording.h"
#include "peal/observe/end_file.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal {
namespace {

/// Warns about injected faults, so that they are not used by accident.
void announce(const FaultPlan& faults, const Report& report) {
  if (faults.empty()) return;
  report(fmt::format("failures are injected into this job: {}", to_text(faults)));
}

/// An exception of the interrupt becomes the error of all ranks, so the error must name the rank.
Interrupt name_rank(const Interrupt& interrupt, Rank rank) {
  if (!interrupt) return {};
  return [interrupt, rank] {
    try {
      let_interrupt(interrupt);
    } catch (const Interrupted& interrupted) {
      const Error cause = error_of(interrupted);
      ErrorDetails details = cause.details();
      details.rank = rank;
      details.cause = ErrorCause::kInterrupted;
      if (details.reason.empty()) details.reason = cause.message();
      throw Error(cause.kind(),
                  fmt::format("rank {} was interrupted: {}", rank, cause.message()),
                  std::move(details));
    }
  };
}

/// Sets `recorder` as soon as the ranks have met.
ProcessGroupPtr join(const InitOptions& options,
                     const rendezvous::MeetRequest& request,
                     const Environment& environment,
                     std::shared_ptr<observe::FlightRecorder>& recorder) {
  if (options.backend != "native") {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("unknown backend \"{}\": the only backend is native", options.backend));
  }
  Config config = config_from(environment);
  if (options.timeout != kGroupTimeout) config.timeout = options.timeout;
  if (!options.interfaces.empty()) config.interfaces = options.interfaces;
  if (!options.is_whole_job) {  // the numbers of the ranks differ there
    config.flight_dir.clear();
    config.faults = {};
  }
  if (!options.flight_dir.empty()) config.flight_dir = options.flight_dir;
  if (!options.faults.empty()) config.faults = options.faults;
  const Deadline deadline = Deadline::after(config.timeout);

  rendezvous::Meeting meeting =
      rendezvous::meet(request, config, environment, deadline, options.report, options.interrupt);
  const rendezvous::Identity identity = meeting.identity;
  check_ranks(config.faults, identity.world_size);
  recorder = init::make_recorder(config, meeting, options.report);
  observe::EndPlace ends = meeting.ends;
  const auto connector =
      std::make_shared<init::Connector>(std::move(meeting), config, options.report);
  announce(config.faults, options.report);

  native::Options native;
  native.recorder = recorder;
  native.ends = std::move(ends);
  native.rank = identity.rank;
  native.config = config;
  native.faults = config.faults;
  native.report = options.report;
  native.interrupt = name_rank(options.interrupt, identity.rank);
  native.world_ranks.resize(static_cast<std::size_t>(identity.world_size));
  std::iota(native.world_ranks.begin(), native.world_ranks.end(), 0);
  native.connect = [connector](std::span<const Rank> ranks,
                               const std::string& group,
                               Deadline until,
                               const std::function<void()>& look,
                               const native::UseTransport& use) {
    connector->connect(ranks, group, until, look, use);
  };
  return std::make_shared<ProcessGroup>(
      native::make_backend(std::move(native), deadline, options.interrupt),
      ProcessGroup::Options{.timeout = config.timeout, .stop_flag = stop_flag_path(environment)});
}

}  // namespace

ProcessGroupPtr init_process_group(const InitOptions& options) {
  const auto part =
      options.is_whole_job ? rendezvous::RanksOf::kWholeJob : rendezvous::RanksOf::kPartOfJob;
  const rendezvous::MeetRequest request{
      .url = options.init_method,
      .rank = options.rank,
      .world_size = options.world_size,
      .store = options.store,
      .ranks = options.is_of_job ? part : rendezvous::RanksOf::kOthers};
  const Environment environment =
      own_environment(process_environment(), init::relation_of(request, process_environment()));
  std::shared_ptr<observe::FlightRecorder> recorder;
  try {
    return join(options, request, environment, recorder);
  } catch (const Error& error) {
    if (recorder) {
      recorder->failed(0, error);  // has the job's name, on which the ranks agree when they meet
    } else if (options.is_whole_job) {
      init::record_failed_start(request, environment, error);
    }
    throw;
  }
}

}  // namespace peal
