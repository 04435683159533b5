#include "peal/init/init.h"

#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "peal/backends/native/native.h"
#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/interrupt.h"
#include "peal/base/launch_mark.h"
#include "peal/init/connector.h"
#include "peal/init/own_job.h"
#include "peal/init/recording.h"
#include "peal/observe/end_file.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal {
namespace {

/// So that nobody trains with them by accident.
void announce(const FaultPlan& faults, const Report& report) {
  if (faults.empty()) return;
  report(Severity::kWarning,
         fmt::format("failures are injected into this job: {}", to_text(faults)));
}

/// What the interrupt throws becomes the error of all ranks, which must know whose it was.
Interrupt name_rank(const Interrupt& interrupt, Rank rank) {
  if (!interrupt) return {};
  return [interrupt, rank] {
    try {
      let_interrupt(interrupt);
    } catch (const Interrupted& interrupted) {
      const Error cause = error_of(interrupted);
      throw Error(cause.kind(), fmt::format("rank {} was interrupted: {}", rank, cause.message()));
    }
  };
}

/// `recorder` is made on the way, when the ranks have met.
ProcessGroupPtr join(const InitOptions& options,
                     const rendezvous::Wish& wish,
                     const Environment& environment,
                     std::shared_ptr<observe::FlightRecorder>& recorder) {
  if (options.backend != "native") {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("there is no backend \"{}\"; there is: native", options.backend));
  }
  Config config = config_from(environment);
  if (options.timeout != kGroupTimeout) config.timeout = options.timeout;
  if (!options.is_whole_job) {  // whose ranks are others there
    config.flight_dir.clear();
    config.faults = {};
  }
  if (!options.faults.empty()) config.faults = options.faults;
  const Deadline deadline = Deadline::after(config.timeout);

  rendezvous::Meeting meeting =
      rendezvous::meet(wish, config, environment, deadline, options.report, options.interrupt);
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
      ProcessGroup::Options{.timeout = config.timeout});
}

}  // namespace

ProcessGroupPtr init_process_group(const InitOptions& options) {
  const auto part =
      options.is_whole_job ? rendezvous::RanksOf::kWholeJob : rendezvous::RanksOf::kPartOfJob;
  const rendezvous::Wish wish{.url = options.init_method,
                              .rank = options.rank,
                              .world_size = options.world_size,
                              .store = options.store,
                              .ranks = options.is_of_job ? part : rendezvous::RanksOf::kOthers};
  const Environment environment =
      own_environment(process_environment(), init::kinship_of(wish, process_environment()));
  std::shared_ptr<observe::FlightRecorder> recorder;
  try {
    return join(options, wish, environment, recorder);
  } catch (const Error& error) {
    if (recorder) {
      recorder->failed(0, error);  // it knows the job's name, which the ranks agree on as they meet
    } else if (options.is_whole_job) {
      init::record_failed_start(wish, environment, error);
    }
    throw;
  }
}

}  // namespace peal
