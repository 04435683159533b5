#include "peal/cli/injection.h"

#include <fmt/format.h>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/fault_plan.h"
#include "peal/base/text_file.h"

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
  throw Error(ErrorKind::kUsage,
              fmt::format("\"{}\": the ranks of one host share memory, and only what goes over the "
                          "network can be broken; add -x PEAL_TRANSPORT=tcp",
                          to_text(plan.links.front())));
}

}  // namespace

std::string read_faults(const std::string& path) {
  constexpr Bytes kLongest = 1_MiB;
  try {
    const FaultPlan plan = parse_faults(read_text_file(path, kLongest));
    if (plan.empty()) throw Error(ErrorKind::kUsage, "there are no faults in it");
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

}  // namespace peal::cli
