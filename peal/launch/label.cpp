#include "peal/launch/label.h"

#include <algorithm>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "peal/base/bracketed.h"

namespace peal::launch {

std::string label_of(const LaunchOptions& options, Rank rank, Channel channel) {
  if (options.labels != Labels::kHost) {
    return label_of(options.labels, fmt::format("[{}]", rank), channel);
  }
  const RankPlace place = place_of(plan_hosts(options.hosts, options.ranks), rank);
  return label_of(options.labels, fmt::format("[{}:{}]", bracketed(place.host), rank), channel);
}

std::string label_of(Labels labels, std::string_view worker, Channel channel) {
  switch (labels) {
    case Labels::kRank:
    case Labels::kHost:
      return fmt::format("{} ", worker);
    case Labels::kStream:
      return fmt::format("{}<{}>:", worker, channel == Channel::kOut ? "stdout" : "stderr");
    case Labels::kNone:
      break;
  }
  return "";
}

std::string with_time(Timestamps timestamps,
                      const std::string& label,
                      std::chrono::system_clock::time_point now) {
  if (timestamps == Timestamps::kOff) return label;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  return fmt::format(
      "{:%a %b %d %H:%M:%S %Y}{}", fmt::localtime(seconds), label.empty() ? " " : label);
}

std::size_t longest_label(const LaunchOptions& options) {
  std::size_t longest = 0;
  const Rank last = world_size_of(options) - 1;
  for (Rank rank = options.labels == Labels::kHost ? 0 : last; rank <= last; ++rank) {
    const std::string label = label_of(options, rank, Channel::kErr);
    longest = std::max(longest, with_time(options.timestamps, label, {}).size());
  }
  return longest;
}

}  // namespace peal::launch
