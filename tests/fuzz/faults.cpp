// Fault plans: a plan that is parsed and printed parses to the same value.
#include "peal/config/fault_plan.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto plan = unless_refused(ErrorKind::kUsage, [&] { return parse_faults(input); });
  if (!plan) return;
  const std::string text = to_text(*plan);
  require(parse_faults(text) == *plan, text);
}
