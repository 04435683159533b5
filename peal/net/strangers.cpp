#include "peal/net/strangers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace peal::net {

Strangers::Strangers(const StrangerLimits& limits, std::string door, Report report)
    : limits_(limits), door_(std::move(door)), report_(std::move(report)) {}

bool Strangers::lets_in(std::size_t half_open, TimePoint now) const {
  return half_open < limits_.half_open && now >= pause_until_;
}

Timeout Strangers::patience(std::size_t half_open) const {
  return half_open < limits_.half_open ? limits_.proof : limits_.proof_in_a_crowd;
}

void Strangers::hung_up(TimePoint now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    failures_ = 0;
  }
  if (++failures_ >= limits_.failures)
    pause_until_ = std::max(pause_until_, second_ + std::chrono::seconds(1));
}

void Strangers::dropped(std::string_view why, TimePoint now) {
  hung_up(now);
  ++unreported_;
  if (reported_ != TimePoint{} && now - reported_ < limits_.report_every) return;
  reported_ = now;
  const long count = std::exchange(unreported_, 0);
  const std::string more =
      count > 1 ? fmt::format(", and {} before it since the last report", count - 1) : "";
  report_(Severity::kWarning, fmt::format("dropped a connection to {}: {}{}", door_, why, more));
}

void Strangers::could_not_let_in(TimePoint now) {
  pause_until_ = std::max(pause_until_, now + std::chrono::milliseconds(100));
}

}  // namespace peal::net
