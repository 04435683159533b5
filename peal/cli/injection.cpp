#include "peal/cli/injection.h"

#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/config/fault_plan.h"
#include "peal/system/text_file.h"

namespace peal::cli {
namespace {

constexpr const char* kVariable = "PEAL_INJECT";

FaultPlan plan_in(const launch::Variables& variables) {
  const auto found = variables.find(kVariable);
  if (found == variables.end()) return {};
  return config_from(fixed_environment({{kVariable, found->second}})).faults;
}

void check_transport(const FaultPlan& plan, const launch::Variables& variables) {
  const auto transport = variables.find("PEAL_TRANSPORT");
  const bool is_tcp =
      transport != variables.end() && transport->second == name_of(TransportChoice::kTcp);
  if (plan.links.empty() || is_tcp) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("\"{}\": the ranks of one host share memory, and only network connections "
                  "can be broken; add -x PEAL_TRANSPORT=tcp",
                  to_text(plan.links.front())));
}

/// Whether SIGKILL ended the rank. Then a shell that runs the rank ends with 128 + SIGKILL.
bool was_killed(const launch::ProcessEnd& end) {
  return WIFSIGNALED(end.status) ? WTERMSIG(end.status) == SIGKILL
                                 : WEXITSTATUS(end.status) == 128 + SIGKILL;
}

}  // namespace

std::string read_faults(const std::string& path) {
  constexpr Bytes kLongest = 1_MiB;
  try {
    const FaultPlan plan = parse_faults(read_text_file(path, kLongest));
    if (plan.empty()) throw Error(ErrorKind::kUsage, "the file contains no faults");
    return to_text(plan);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--inject {}: {}", path, error.message()));
  }
}

std::string announce_faults(const launch::Variables& variables, int ranks) {
  const FaultPlan plan = plan_in(variables);
  check_ranks(plan, ranks);
  check_transport(plan, variables);
  std::string text;
  for (const std::string& fault : to_texts(plan)) text += fmt::format("peal: injects: {}\n", fault);
  return text;
}

std::string tell_faults(const launch::Variables& variables,
                        std::span<const launch::ProcessEnd> ends) {
  std::string text;
  for (const ProcessFault& fault : plan_in(variables).processes) {
    if (fault.kind != ProcessFault::Kind::kKill) continue;
    for (const launch::ProcessEnd& end : ends) {
      if (end.rank != fault.rank || end.ended_by != launch::EndedBy::kItself) continue;
      if (!was_killed(end)) {
        text += fmt::format("peal: this fault did not happen: {}; rank {} ended before it\n",
                            to_text(fault),
                            fault.rank);
      } else if (!end.out_of_memory) {
        text += fmt::format(
            "peal: the injected fault killed rank {}: {}\n", fault.rank, to_text(fault));
      }
    }
  }
  return text;
}

}  // namespace peal::cli
