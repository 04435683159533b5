#include "peal/observe/disagreement.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/observe/make_diagnosis.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// Ranks whose collective is the same, with that collective.
struct Side {
  std::vector<Rank> ranks;
  const FlightOperation* operation = nullptr;
  const Flight* flight = nullptr;
};

bool agree(const FlightOperation& one, const FlightOperation& other) {
  OperationKind mine = one.kind;
  mine.group = other.kind.group;  // each rank numbers its groups itself
  return mine.word() == other.kind.word() && one.count == other.count;
}

/// Finds the first collective of any group in which ranks differ, and returns its sides: the
/// smallest first, and of two equal ones the one with the higher first rank. Empty if all ranks
/// agree.
std::vector<Side> sides_of_first_difference(const JobView& job) {
  for (const auto& [name, group] : job.groups()) {
    for (const auto& [sequence, ranks] : group.collectives) {
      std::vector<Side> sides;
      for (const auto& [rank, operation] : ranks) {
        const auto same = std::ranges::find_if(
            sides, [own = operation](const Side& side) { return agree(*side.operation, *own); });
        Side& side = same != sides.end() ? *same : sides.emplace_back();
        side.ranks.push_back(rank);
        side.operation = operation;
        side.flight = job.at(rank).flight;
      }
      if (sides.size() < 2) continue;
      std::ranges::sort(sides, [](const Side& one, const Side& other) {
        if (one.ranks.size() != other.ranks.size()) return one.ranks.size() < other.ranks.size();
        return one.ranks.front() > other.ranks.front();
      });
      return sides;
    }
  }
  return {};
}

std::string algorithm_text(const Side& side) {
  const std::size_t number = side.operation->kind.algorithm;
  return number < side.flight->algorithms.size() ? ", by " + side.flight->algorithms[number] : "";
}

std::string side_text(const Side& side) {
  return fmt::format("{} {} in {}",
                     ranks_text(side.ranks),
                     side.ranks.size() == 1 ? "was" : "were",
                     operation_text(*side.flight, *side.operation));
}

std::string side_text_with_algorithm(const Side& side) {
  return side_text(side) + algorithm_text(side);
}

}  // namespace

std::optional<Diagnosis> disagreement(const JobView& job) {
  const std::vector<Side> sides = sides_of_first_difference(job);
  if (sides.empty()) return std::nullopt;
  const bool looks_the_same = operation_text(*sides[0].flight, *sides[0].operation) ==
                              operation_text(*sides[1].flight, *sides[1].operation);
  const auto text_of = looks_the_same ? side_text_with_algorithm : side_text;
  std::string text = "ranks were in different operations: " + text_of(sides[0]);
  for (std::size_t i = 1; i < sides.size(); ++i) {
    text += (i == 1 ? " while " : ", and ") + text_of(sides[i]);
  }
  return make_diagnosis(job, Diagnosis::Cause::kMismatch, sides[0].ranks, text);
}

}  // namespace peal::observe
