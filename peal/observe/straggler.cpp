#include "peal/observe/straggler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "peal/observe/make_diagnosis.h"
#include "peal/observe/phrases.h"

namespace peal::observe {
namespace {

/// Floating point, since a file may contain more than fits into whole nanoseconds.
using Seconds = std::chrono::duration<double>;

struct Waiting {
  std::map<Rank, Seconds> by_rank;  // by the rank that was waited for
  Seconds total{0};
  Seconds recorded{0};  // over all ranks
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
    waiting.recorded +=
        Seconds(end.time_since_epoch()) - Seconds(operations.front().start.time_since_epoch());
  }
  return waiting;
}

/// Smaller shares are normal unevenness.
constexpr double kLeastShareOfWaiting = 0.6;
constexpr double kLeastShareOfTime = 0.05;

}  // namespace

std::optional<Diagnosis> straggler(const JobView& job) {
  const Waiting waiting = waiting_in(job);
  const auto most =
      std::ranges::max_element(waiting.by_rank, {}, [](const auto& entry) { return entry.second; });
  if (most == waiting.by_rank.end() || waiting.total.count() == 0) return std::nullopt;
  const auto part = [&](Seconds of) { return of.count() == 0 ? 1.0 : most->second / of; };
  const double of_waiting = part(waiting.total);
  const double of_time = part(waiting.recorded);
  if (of_waiting < kLeastShareOfWaiting || of_time < kLeastShareOfTime) return std::nullopt;
  return make_diagnosis(
      job,
      Diagnosis::Cause::kStraggler,
      {most->first},
      fmt::format("nothing went wrong, but rank {} is slow: the others waited {} for "
                  "it, {:.0f} % of all their waiting and {:.0f} % of the time of all "
                  "ranks",
                  most->first,
                  length_text(std::chrono::nanoseconds(static_cast<std::int64_t>(
                      std::min(most->second / std::chrono::nanoseconds(1), 1e18)))),
                  of_waiting * 100,
                  of_time * 100));
}

}  // namespace peal::observe
