#include "peal/launch/agents/engine_program.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/command.h"
#include "peal/launch/program.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::agents {
namespace {

/// See mpirun_problem.
std::string problem_of(const std::string& mpirun) {
  static std::map<std::string, std::string> known;
  const auto found = known.find(mpirun);
  if (found != known.end()) return found->second;
  std::string problem;
  try {
    problem = mpirun_problem(ask_program({.words = {mpirun, "--version"}}).out);
  } catch (const Error& error) {
    problem = error.what();
  }
  return known.emplace(mpirun, std::move(problem)).first->second;
}

}  // namespace

EngineProgram find_engine_program(const EngineOptions& options) {
  const std::string name = agent_command(options, "").front();
  const Variables variables = process_variables();
  const auto path = variables.find("PATH");
  const CommandLookup found =
      find_command(name, path == variables.end() ? "/usr/bin:/bin" : path->second);
  if (found.exit_code == 127 && options.engine != Engine::kThisMachine) {
    return {.problem = fmt::format(
                "there is no {} on this machine: install it, or add its folder to PATH", name)};
  }
  if (found.exit_code != 0) return {.problem = found.problem};
  const std::string problem = options.engine == Engine::kMpi ? problem_of(found.path) : "";
  if (!problem.empty()) return {.problem = problem};
  return {.path = found.path};
}

}  // namespace peal::launch::agents
