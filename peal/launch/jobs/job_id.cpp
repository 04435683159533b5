#include "peal/launch/jobs/job_id.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::jobs {
namespace {

constexpr std::string_view kRandomLetters = "23456789bcdfghjkmnpqrstvwxz";
constexpr std::size_t kMostShown = 10;   // of the ids that a text may mean
constexpr std::size_t kMostNearest = 3;  // of the ids that a wrong text may mean

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The text with only safe characters, without a "-" at its ends or beside another.
std::string readable_part(std::string_view text, std::size_t longest) {
  std::string part;
  for (const char c : text) {
    const char next = lower(c);
    if (is_letter(next) || is_digit(next)) {
      part += next;
    } else if (!part.empty() && part.back() != '-') {
      part += '-';
    }
  }
  if (part.empty() || !is_letter(part.front())) part.insert(0, "job-");
  part.resize(std::min(part.size(), longest));
  while (part.back() == '-') part.pop_back();  // ends at the letter in front
  return part;
}

std::vector<std::string> ids_with_beginning(std::string_view beginning,
                                            std::span<const std::string> ids) {
  std::vector<std::string> found;
  for (const std::string& id : ids) {
    if (id.starts_with(beginning)) found.push_back(id);
  }
  return found;
}

/// "mnist-7kq2zc"
bool ends_like_an_id(std::string_view text) {
  if (text.size() <= kRandomPartLength + 1) return false;
  const std::string_view end = text.substr(text.size() - kRandomPartLength - 1);
  return end.front() == '-' && end.find_first_not_of(kRandomLetters, 1) == std::string_view::npos;
}

/// The readable part of the ids of jobs with this name. Nothing for a text that is not a name.
std::optional<std::string> part_of_name(std::string_view name) {
  // A text that looks like an id may be a misspelt one. A text without letters is not a name.
  const auto is_readable = [](char c) { return is_letter(lower(c)) || is_digit(c); };
  if (ends_like_an_id(name) || std::ranges::none_of(name, is_readable)) return std::nullopt;
  return readable_part(name, kLongestJobId - kRandomPartLength - 1);
}

/// The ids of jobs with exactly this name.
std::vector<std::string> ids_with_name(const std::string& part, std::span<const std::string> ids) {
  std::vector<std::string> found = ids_with_beginning(part + "-", ids);
  std::erase_if(found, [&](const std::string& id) {
    return id.size() != part.size() + 1 + kRandomPartLength;
  });
  return found;
}

/// The ids that the text may mean, by rules 2 to 4 of find_job_id.
std::vector<std::string> candidates_for(std::string_view text, std::span<const std::string> ids) {
  std::vector<std::string> begin = ids_with_beginning(text, ids);
  const auto part = part_of_name(text);
  if (begin.size() == 1 || !part) return begin;
  std::vector<std::string> named = ids_with_name(*part, ids);
  if (named.size() == 1 || (begin.empty() && !named.empty())) return named;
  return begin.empty() ? ids_with_beginning(*part, ids) : begin;
}

/// How far a wrong text is from an id. The user may have typed only its beginning.
double difference_from(std::string_view text, std::string_view id) {
  return std::min(difference(text, id), difference(text, id.substr(0, text.size())));
}

std::vector<std::string> nearest_ids(std::string_view text, std::span<const std::string> ids) {
  std::vector<std::pair<double, std::string>> near;
  for (const std::string& id : ids) {
    const double differs = difference_from(text, id);
    if (differs <= kNearDifference) near.emplace_back(differs, id);
  }
  std::ranges::sort(near);
  std::vector<std::string> nearest;
  for (const auto& [differs, id] : near) {
    if (nearest.size() < kMostNearest) nearest.push_back(id);
  }
  return nearest;
}

Error unknown_id(std::string_view text, std::span<const std::string> ids) {
  const std::string start = fmt::format("there is no job {}", quoted_beginning(text));
  if (ids.empty()) {
    return Error(ErrorKind::kUsage, start + ": no job was submitted here by `peal submit`");
  }
  const std::vector<std::string> nearest = nearest_ids(text, ids);
  const std::string hint = nearest.empty()
                               ? std::string("`peal jobs` lists all")
                               : fmt::format("did you mean {}?", fmt::join(nearest, " or "));
  return Error(ErrorKind::kUsage, fmt::format("{}; {}", start, hint));
}

Error ambiguous_id(std::string_view text, const std::vector<std::string>& candidates) {
  const std::size_t shown = std::min(candidates.size(), kMostShown);
  const std::size_t more = candidates.size() - shown;
  return Error(ErrorKind::kUsage,
               fmt::format("{} jobs begin with {}: {}{}; type more of the id",
                           candidates.size(),
                           quoted_beginning(text),
                           fmt::join(candidates.begin(),
                                     candidates.begin() + static_cast<std::ptrdiff_t>(shown),
                                     ", "),
                           more == 0 ? "" : fmt::format(" and {} more", more)));
}

}  // namespace

std::string make_job_id(std::string_view name, std::string_view random_part) {
  const std::size_t longest = kLongestJobId - random_part.size() - 1;
  return fmt::format("{}-{}", readable_part(name, longest), random_part);
}

std::string make_random_part() {
  try {
    std::random_device random;
    std::uniform_int_distribution<std::size_t> index(0, kRandomLetters.size() - 1);
    std::string part;
    while (part.size() < kRandomPartLength) part += kRandomLetters[index(random)];
    return part;
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kResource,
                fmt::format("cannot make an id for the job: {}", error.what()));
  }
}

bool is_job_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestJobId && is_letter(text.front()) &&
         text.back() != '-' &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

std::string find_job_id(std::string_view text, std::span<const std::string> ids) {
  if (text.empty()) {
    throw Error(ErrorKind::kUsage, "the id of the job is empty; `peal jobs` lists all");
  }
  if (std::ranges::find(ids, text) != ids.end()) return std::string(text);
  std::vector<std::string> candidates = candidates_for(text, ids);
  if (candidates.empty()) throw unknown_id(text, ids);
  if (candidates.size() > 1) {
    std::ranges::sort(candidates);
    throw ambiguous_id(text, candidates);
  }
  return candidates.front();
}

}  // namespace peal::launch::jobs
