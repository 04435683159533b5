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
#include "peal/rendezvous/rendezvous.h"

namespace peal {

ProcessGroupPtr init_process_group(const InitOptions& options) {
  if (options.backend != "native") {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("there is no backend \"{}\"; there is: native", options.backend));
  }
  const Environment environment = process_environment();
  Config config = config_from(environment);
  if (options.timeout != kGroupTimeout) config.timeout = options.timeout;
  const Deadline deadline = Deadline::after(config.timeout);

  const rendezvous::Wish wish{
      .url = options.init_method, .rank = options.rank, .world_size = options.world_size};
  rendezvous::Meeting meeting = rendezvous::meet(wish, config, environment, deadline);
  const rendezvous::Identity identity = meeting.identity;
  const auto connector =
      std::make_shared<init::Connector>(std::move(meeting), config, options.report);

  native::Options native;
  native.rank = identity.rank;
  native.config = config;
  native.world_ranks.resize(static_cast<std::size_t>(identity.world_size));
  std::iota(native.world_ranks.begin(), native.world_ranks.end(), 0);
  native.connect = [connector](std::span<const Rank> ranks, const std::string& group, Deadline d) {
    return connector->connect(ranks, group, d);
  };
  return std::make_shared<ProcessGroup>(native::make_backend(std::move(native), deadline),
                                        ProcessGroup::Options{.timeout = config.timeout});
}

}  // namespace peal
