#include "peal/launch/allocation_end.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"
#include "peal/launch/program.h"

namespace peal::launch {
namespace {

constexpr Timeout kSqueuePatience{30'000};

/// "02:03:04", "3:04"
std::optional<std::chrono::seconds> parse_clock(std::string_view text) {
  std::int64_t seconds = 0;
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  for (const std::string_view part : parts) {
    const auto number = try_parse_number<std::uint16_t>(part);
    if (!number) return std::nullopt;
    seconds = seconds * 60 + *number;
  }
  return std::chrono::seconds(seconds);
}

std::optional<Timeout> parse_line(std::string_view line) {
  std::chrono::days days{0};
  if (const auto dash = line.find('-'); dash != std::string_view::npos) {
    const auto number = try_parse_number<std::uint16_t>(line.substr(0, dash));
    if (!number) return std::nullopt;
    days = std::chrono::days(*number);
    line.remove_prefix(dash + 1);
  }
  const auto rest = parse_clock(line);
  if (!rest) return std::nullopt;
  return Timeout(days + *rest);
}

}  // namespace

std::optional<Timeout> parse_time_left(std::string_view text) {
  std::optional<Timeout> shortest;
  for (const std::string_view line : split(text, '\n')) {
    const auto left = parse_line(line);
    if (left) shortest = std::min(shortest.value_or(*left), *left);
  }
  return shortest;
}

std::optional<Timeout> time_left_of_allocation(const Environment& environment) {
  const auto job = environment("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  try {
    const Answer answer =
        ask_program({.words = {"squeue", "--noheader", "--jobs=" + *job, "--format=%L"},
                     .patience = kSqueuePatience});
    return answer.exit_code == 0 ? parse_time_left(answer.out) : std::nullopt;
  } catch (const Error&) {  // there is no squeue
    return std::nullopt;
  }
}

}  // namespace peal::launch
