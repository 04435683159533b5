// The text form of schedules: a schedule that is parsed and printed parses to the same value.
#include "peal/schedule/text.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  const auto schedule =
      unless_refused(ErrorKind::kUsage, [&] { return schedule::parse_schedule(input); });
  if (!schedule) return;
  const std::string text = to_text(*schedule);
  require(schedule::parse_schedule(text) == *schedule, text);
}
