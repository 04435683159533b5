#include "peal/config/launch_mark.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/fnv.h"
#include "peal/config/config.h"

namespace peal {
namespace {

constexpr const char* kJob = "PEAL_JOB";
constexpr const char* kRunOfTorchrun = "TORCHELASTIC_RUN_ID";
constexpr std::array<const char*, 2> kOfTheRank = {kFlightDirVariable, "PEAL_INJECT"};
/// In the order of the digests in the mark. HOROVOD_RANK stands for all of kHorovodPlace.
constexpr std::array kMarked = {
    kJob, kOfTheRank[0], kOfTheRank[1], kRunOfTorchrun, kHorovodPlace[0]};

bool is_horovod_place(std::string_view name) {
  return std::ranges::find(kHorovodPlace, name) != kHorovodPlace.end();
}

/// The name in kMarked under which the variable is marked.
std::string_view marked_name(std::string_view name) {
  return is_horovod_place(name) ? std::string_view(kHorovodPlace[0]) : name;
}

/// The value that the mark has under this name of kMarked.
std::optional<std::string> marked_value(const Environment& environment, std::string_view name) {
  if (!is_horovod_place(name)) return environment(std::string(name));
  std::string place;
  for (const char* const part : kHorovodPlace) {
    if (const auto value = environment(part)) place += fmt::format("{}={}\n", part, *value);
  }
  return place.empty() ? std::nullopt : std::optional(place);
}

/// A short hash of the value of a variable. "-": the variable is not set.
std::string digest(const std::optional<std::string>& value) {
  return value ? fmt::format("{:x}", fnv(*value)) : "-";
}

struct Mark {
  Rank rank = 0;
  int world_size = 0;
  std::array<std::string, kMarked.size()> digests;
};

std::optional<Mark> mark_in(const Environment& environment) {
  std::istringstream text(environment(kLaunchMark).value_or(""));
  Mark mark;
  text >> mark.rank >> mark.world_size;
  for (std::string& word : mark.digests) text >> word;
  return text ? std::optional(mark) : std::nullopt;
}

/// `name` is in kMarked.
bool is_as_marked(const Environment& environment, const Mark& mark, std::string_view name) {
  const auto place = std::ranges::find(kMarked, name) - kMarked.begin();
  return mark.digests[static_cast<std::size_t>(place)] == digest(marked_value(environment, name));
}

}  // namespace

std::string launch_mark(const Environment& environment, Rank rank, int world_size) {
  std::vector<std::string> words = {fmt::format("{} {}", rank, world_size)};
  for (const char* const name : kMarked) words.push_back(digest(marked_value(environment, name)));
  return fmt::format("{}", fmt::join(words, " "));
}

Relation relation(const Environment& environment, Rank rank, int world_size) {
  const std::optional<Mark> mark = mark_in(environment);
  if (!mark) return Relation::kRank;
  const bool has_launcher =
      is_as_marked(environment, *mark, kJob) && is_as_marked(environment, *mark, kRunOfTorchrun);
  if (!has_launcher) return Relation::kInnerJob;
  const bool is_rank = mark->rank == rank && mark->world_size == world_size;
  return is_rank ? Relation::kRank : Relation::kOtherRank;
}

bool is_inherited(const Environment& environment, const std::string& name) {
  const std::optional<Mark> mark = mark_in(environment);
  const std::string_view marked = marked_name(name);
  return mark && std::ranges::find(kMarked, marked) != kMarked.end() && environment(name) &&
         is_as_marked(environment, *mark, marked);
}

Environment own_environment(const Environment& environment, Relation relation) {
  if (relation == Relation::kRank) return environment;
  return [environment, relation](const std::string& name) -> std::optional<std::string> {
    const bool is_of_the_rank = std::ranges::find(kOfTheRank, name) != kOfTheRank.end() ||
                                is_horovod_place(name) ||
                                (name == kJob && relation == Relation::kInnerJob);
    if (is_of_the_rank && is_inherited(environment, name)) return std::nullopt;
    return environment(name);
  };
}

}  // namespace peal
