#include "peal/launch/allocation_end.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/launch/program.h"

namespace peal::launch {
namespace {

constexpr Timeout kSlurmPatience{30'000};

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

/// The output of the command for this job; nothing outside of Slurm. Errors: resource (Slurm does
/// not answer).
std::optional<std::string> ask_slurm(const Environment& environment,
                                     std::vector<std::string> words) {
  const auto job = environment("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  words.push_back(*job);
  Answer answer = ask_program({.words = words, .patience = kSlurmPatience});
  if (answer.exit_code == 0) return std::move(answer.out);
  const std::string problem =
      answer.exit_code
          ? fmt::format("exit code {}: {}", *answer.exit_code, split(answer.err, '\n').front())
          : fmt::format("it gives no answer within {} s", kSlurmPatience.count() / 1000);
  throw Error(ErrorKind::kResource,
              fmt::format("`{}` has failed: {}", fmt::join(words, " "), printable_line(problem)));
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
  try {
    const auto left = ask_slurm(environment, {"squeue", "--noheader", "--format=%L", "--jobs"});
    return left ? parse_time_left(*left) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string slurm_field(std::string_view line, std::string_view name) {
  for (const std::string_view word : split(line, ' ')) {
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return std::string(word.substr(name.size() + 1));
    }
  }
  return "";
}

bool has_preempt_time(std::string_view line) {
  const std::string time = slurm_field(line, "PreemptTime");
  return !time.empty() && time != "None";
}

bool shows_preemption(std::string_view text, std::string_view job) {
  return std::ranges::any_of(split(text, '\n'), [&](std::string_view line) {
    const bool is_of_job =
        slurm_field(line, "JobId") == job || slurm_field(line, "HetJobId") == job;
    return is_of_job && slurm_field(line, "JobState") == "RUNNING" && has_preempt_time(line);
  });
}

bool is_preempted(const Environment& environment) {
  const auto shown = ask_slurm(environment, {"scontrol", "show", "job", "--oneliner"});
  return shown && shows_preemption(*shown, environment("SLURM_JOB_ID").value_or(""));
}

}  // namespace peal::launch
