#include "peal/cli/agents_options.h"

#include <filesystem>

#include "peal/cli/run_attempts.h"
#include "peal/launch/agents/machine_variables.h"

namespace peal::cli {

launch::agents::AgentsOptions agents_options(const RunRequest& request,
                                             const std::string& job,
                                             const launch::Variables& inherited) {
  using launch::agents::Part;
  return {.engine = request.engine.value_or(launch::agents::EngineOptions{}),
          .begin = {.job = job,
                    .commands = {request.options.command},
                    .environment = given_variables(request, part_of(inherited, Part::kJob)),
                    .directory = std::filesystem::current_path().string(),
                    .grace = request.options.grace,
                    .silence = launch::agents::kAgentPatience},
          .version = PEAL_VERSION,
          .patience = request.patience};
}

}  // namespace peal::cli
