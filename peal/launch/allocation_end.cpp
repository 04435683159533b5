#include "peal/launch/allocation_end.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"
#include "peal/launch/scontrol.h"

namespace peal::launch {
namespace {

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
    return parse_time_left(ask_slurm({"squeue", "--noheader", "--format=%L", "--jobs", *job}));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool has_preempt_time(std::string_view line) {
  const std::string time = slurm_field(line, "PreemptTime");
  return !time.empty() && time != "None";
}

bool shows_preemption(std::string_view text, std::string_view job) {
  return std::ranges::any_of(lines_of_job(text, job), [](std::string_view line) {
    return slurm_field(line, "JobState") == "RUNNING" && has_preempt_time(line);
  });
}

bool is_preempted(const Environment& environment) {
  const auto job = environment("SLURM_JOB_ID");
  return job && shows_preemption(ask_slurm({"scontrol", "show", "job", "--oneliner", *job}), *job);
}

}  // namespace peal::launch
