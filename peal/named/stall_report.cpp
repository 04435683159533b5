#include "peal/named/stall_report.h"

#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peal::named {
namespace {

constexpr std::size_t kShownNames = 5;

std::string shortened(const std::vector<std::string>& names) {
  if (names.size() <= kShownNames) return fmt::format("[{}]", fmt::join(names, ", "));
  return fmt::format(
      "[{}, ...]",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(kShownNames), ", "));
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

std::string place_text(const Standing& standing, Timeout answers_within) {
  if (!standing.place) {
    return fmt::format(
        "\n    its program did not say within {:g} seconds what it is doing; it may hold Python's "
        "GIL",
        std::chrono::duration<double>(answers_within).count());
  }
  return standing.place->empty() ? "" : "\n" + indented(*standing.place);
}

}  // namespace

std::vector<std::string> missing_names(const Stalled& stalled, const Standing& standing) {
  std::vector<std::string> names;
  if (standing.join == Standing::Join::kJoined) return names;
  for (std::size_t i = 0; i < stalled.names.size(); ++i) {
    if ((standing.has >> i & 1) == 0) names.push_back(stalled.names[i]);
  }
  return names;
}

std::string missing_ranks(const Stalled& stalled, const StandingsOfRanks& ranks) {
  std::string missing;
  for (std::size_t rank = 0; rank < ranks.standings.size(); ++rank) {
    if (static_cast<Rank>(rank) == ranks.self) continue;
    const std::optional<Standing>& standing = ranks.standings[rank];
    if (!standing) {
      missing += fmt::format("\n{}: does not answer; its process may be stopped or busy",
                             ranks.global_ranks[rank]);
      continue;
    }
    const std::vector<std::string> names = missing_names(stalled, *standing);
    if (names.empty()) continue;
    missing += fmt::format("\n{}: {}", ranks.global_ranks[rank], shortened(names));
    missing += place_text(*standing, ranks.answers_within);
  }
  return missing;
}

std::string stall_report(const Stalled& stalled, const StandingsOfRanks& ranks, Timeout warning) {
  for (Rank rank = 0; rank < ranks.self; ++rank) {
    const auto& standing = ranks.standings[static_cast<std::size_t>(rank)];
    if (standing && standing->has != 0) return {};  // that rank reports
  }
  const std::string missing = missing_ranks(stalled, ranks);
  if (missing.empty()) return {};
  return fmt::format(
      "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
      "ranks and are waiting for remainder of ranks for more than {} seconds. Rank {} has waited "
      "for {} seconds. Either ranks submit different tensors, or a rank does something else.\n"
      "Missing ranks:{}",
      std::chrono::duration_cast<std::chrono::seconds>(warning).count(),
      ranks.global_ranks[static_cast<std::size_t>(ranks.self)],
      std::chrono::duration_cast<std::chrono::seconds>(stalled.waited).count(),
      missing);
}

std::string stall_end(const Stalled& stalled, const StandingsOfRanks& ranks, Timeout limit) {
  const std::string missing = missing_ranks(stalled, ranks);
  if (missing.empty()) return {};
  return fmt::format(
      "{} has waited on rank {} for other ranks for more than {:g} seconds, the limit of the stall "
      "check. Missing ranks:{}",
      stalled.names.front(),
      ranks.global_ranks[static_cast<std::size_t>(ranks.self)],
      std::chrono::duration<double>(limit).count(),
      missing);
}

}  // namespace peal::named
