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

/// See mpirun_problem. Called once for each host, so the result is kept, except if mpirun fails.
std::string problem_of(const std::string& mpirun) {
  static std::map<std::string, std::string> known;
  const auto found = known.find(mpirun);
  if (found != known.end()) return found->second;
  try {
    std::string problem = mpirun_problem(ask_program({.words = {mpirun, "--version"}}).out);
    return known.emplace(mpirun, std::move(problem)).first->second;
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

EngineProgram find_engine_program(const EngineOptions& options) {
  const std::string name = agent_command(options, "").front();
  const CommandLookup found = find_command(name, process_variables());
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
