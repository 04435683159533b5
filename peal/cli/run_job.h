// Runs the job of `peal run`, from the notices to the exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/launch/agents/agent_host.h"
#include "peal/launch/agents/engine.h"
#include "peal/launch/attempts.h"
#include "peal/launch/containers/container.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/options.h"

namespace peal::cli {

struct RunRequest {
  launch::LaunchOptions options;
  std::optional<launch::ElasticOptions> elastic;  // nothing: the number of ranks is fixed
  /// For ranks on other machines; nothing: all are on this machine.
  std::optional<launch::agents::EngineOptions> engine;
  launch::agents::Patience patience{};                       // with other machines
  std::optional<launch::containers::Container> container{};  // of each rank; nothing: in none
  std::string container_engine{};                            // empty: podman, else docker
  launch::AttemptRules attempts{};                           // unless the job is elastic
  std::vector<std::string> notices;                          // sentences for the user
};

/// Prints the notices, runs the launch, writes the ranks' output and the report to stdout and
/// stderr, and returns the exit code.
int run(const RunRequest& request);

}  // namespace peal::cli
