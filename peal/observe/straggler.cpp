#include "peal/observe/straggler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "peal/observe/conclude.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

struct Waiting {
  std::map<Rank, std::chrono::nanoseconds> by_rank;  // for whom
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds recorded{0};  // of all ranks
};

Waiting waiting_in(const JobView& job) {
  Waiting waiting;
  for (const RankView& view : job.ranks()) {
    if (view.flight == nullptr || view.flight->operations.empty()) continue;
    const std::vector<FlightOperation>& operations = view.flight->operations;
    WallTime end = operations.front().start;
    for (const FlightOperation& operation : operations) {
      if (operation.end) end = std::max(end, *operation.end);
      if (!operation.waited_for) continue;
      waiting.by_rank[*operation.waited_for] += operation.waited;
      waiting.total += operation.waited;
    }
    waiting.recorded += end - operations.front().start;
  }
  return waiting;
}

/// Shares below are everyday unevenness.
constexpr double kLeastShareOfWaiting = 0.6;
constexpr double kLeastShareOfTime = 0.05;

}  // namespace

std::optional<Diagnosis> straggler(const JobView& job) {
  const Waiting waiting = waiting_in(job);
  const auto most =
      std::ranges::max_element(waiting.by_rank, {}, [](const auto& entry) { return entry.second; });
  if (most == waiting.by_rank.end() || waiting.total.count() == 0) return std::nullopt;
  const auto part = [&](std::chrono::nanoseconds of) {
    return of.count() == 0
               ? 1.0
               : static_cast<double>(most->second.count()) / static_cast<double>(of.count());
  };
  const double of_waiting = part(waiting.total);
  const double of_time = part(waiting.recorded);
  if (of_waiting < kLeastShareOfWaiting || of_time < kLeastShareOfTime) return std::nullopt;
  return conclude(job,
                  Diagnosis::Cause::kStraggler,
                  {most->first},
                  fmt::format("nothing went wrong, but rank {} is slow: the others waited {} for "
                              "it, {:.0f} % of all their waiting and {:.0f} % of the time of all "
                              "ranks",
                              most->first,
                              length_text(most->second),
                              of_waiting * 100,
                              of_time * 100));
}

}  // namespace peal::observe
