#include "peal/cli/time_limits.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/config/environment.h"
#include "peal/launch/allocation_end.h"

namespace peal::cli {
namespace {

constexpr double kLongestGrace = 86'400;          // seconds: a day
constexpr double kLongestTimeLimit = 31'536'000;  // a year

Timeout parse_seconds(const char* option, const std::string& text, double longest) {
  const auto seconds = try_parse_number<double>(text);
  if (seconds && *seconds >= 0 && *seconds <= longest) {  // false for NaN
    return Timeout(static_cast<Timeout::rep>(*seconds * 1000));
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{} {}: it takes seconds from 0 to {}, as in 0.5",
                          option,
                          quoted_beginning(text),
                          longest));
}

}  // namespace

void set_time_limits(const TimeLimits& given, launch::LaunchOptions& options) {
  options.grace = parse_seconds("--grace", given.grace, kLongestGrace);
  if (!given.timeout.empty()) {
    options.time_limit = parse_seconds("--timeout", given.timeout, kLongestTimeLimit);
  }
  if (given.warn_before.empty()) return;
  options.warn_before = parse_seconds("--warn-before", given.warn_before, kLongestTimeLimit);
  if (const auto left = launch::time_left_of_allocation(process_environment())) {
    options.allocation_end = Clock::now() + *left;
  }
  if (options.time_limit && options.warn_before > *options.time_limit) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--warn-before {} is longer than --timeout {}: the ranks would stop at "
                            "once; give at most the time limit",
                            given.warn_before,
                            given.timeout));
  }
  if (options.time_limit || options.allocation_end) return;
  throw Error(ErrorKind::kUsage,
              "--warn-before needs a time limit, and this job has none: add --timeout, or start it "
              "in a job of Slurm that has a limit");
}

}  // namespace peal::cli
