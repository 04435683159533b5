#include "peal/launch/scontrol.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/launch/program.h"

namespace peal::launch {
namespace {

constexpr Timeout kSlurmPatience{30'000};

constexpr std::array<std::string_view, 4> kIds = {"JobId", "ArrayJobId", "ArrayTaskId", "HetJobId"};

/// "JobId=7 JobName=my job UserId=ann(1000) Account=x JobState=RUNNING Reason=None ...": the ids,
/// the value of JobName, and the text from JobState on. Empty parts for other texts.
struct Line {
  std::string_view ids{};
  std::string_view name{};
  std::string_view fields{};
};

Line parse_job(std::string_view line) {
  constexpr std::string_view kName = " JobName=";
  constexpr std::string_view kUser = " UserId=";
  constexpr std::string_view kState = " JobState=";
  const auto state = line.find(kState);
  if (state == std::string_view::npos || line.rfind(kState) != state) return {};
  const std::string_view before = line.substr(0, state);
  Line parts{.ids = before, .fields = line.substr(state)};
  if (const auto name = before.find(kName); name != std::string_view::npos) {
    parts.ids = before.substr(0, name);
    parts.name = before.substr(name + kName.size());
    parts.name = parts.name.substr(0, parts.name.rfind(kUser));
  }
  return parts;
}

std::string_view value_in(std::string_view text, std::string_view name) {
  for (const std::string_view word : split(text, ' ')) {
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return word.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

std::string ask_slurm(const std::vector<std::string>& words) {
  Answer answer = ask_program({.words = words, .patience = kSlurmPatience});
  if (answer.exit_code == 0) return std::move(answer.out);
  const std::string problem =
      answer.exit_code
          ? fmt::format("exit code {}: {}", *answer.exit_code, split(answer.err, '\n').front())
          : fmt::format("it gives no answer within {} s", kSlurmPatience.count() / 1000);
  throw Error(ErrorKind::kResource,
              fmt::format("`{}` has failed: {}", fmt::join(words, " "), printable_line(problem)));
}

std::string slurm_field(std::string_view line, std::string_view name) {
  const Line parts = parse_job(line);
  if (name == "JobName") return std::string(parts.name);
  const bool is_id = std::ranges::find(kIds, name) != kIds.end();
  return std::string(value_in(is_id ? parts.ids : parts.fields, name));
}

std::vector<std::string_view> lines_of_job(std::string_view text, std::string_view job) {
  std::vector<std::string_view> lines = split(text, '\n');
  std::erase_if(lines, [&](std::string_view line) {
    return slurm_field(line, "JobId") != job && slurm_field(line, "HetJobId") != job;
  });
  return lines;
}

}  // namespace peal::launch
