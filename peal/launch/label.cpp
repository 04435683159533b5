#include "peal/launch/label.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace peal::launch {

std::string label_of(Labels labels, Rank rank, Channel channel) {
  return label_of(labels, fmt::format("[{}]", rank), channel);
}

std::string label_of(Labels labels, std::string_view worker, Channel channel) {
  switch (labels) {
    case Labels::kRank:
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
  return with_time(options.timestamps,
                   label_of(options.labels, world_size_of(options) - 1, Channel::kErr),
                   {})
      .size();
}

}  // namespace peal::launch
