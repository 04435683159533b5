#include "peal/cli/agents_options.h"

#include <filesystem>
#include <utility>

#include "peal/cli/run_attempts.h"
#include "peal/launch/agents/machine_variables.h"

namespace peal::cli {

launch::agents::AgentsOptions agents_options(const RunRequest& request,
                                             const std::string& job,
                                             const launch::Variables& inherited) {
  using launch::agents::Part;
  launch::agents::Begin begin = {
      .job = job,
      .environment = given_variables(request, part_of(inherited, Part::kJob)),
      .directory = "/",
      .grace = request.options.grace,
      .silence = launch::agents::kAgentPatience,
      .container_engine = request.container_engine};
  if (request.container) {
    begin.images = {request.container->image};
  } else {
    begin.commands = {{.words = request.options.command}};
    begin.directory = std::filesystem::current_path().string();
  }
  return {.engine = request.engine.value_or(launch::agents::EngineOptions{}),
          .begin = std::move(begin),
          .version = PEAL_VERSION,
          .patience = request.patience};
}

}  // namespace peal::cli
