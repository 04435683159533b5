#include "peal/store/strangers.h"

#include <utility>

#include <fmt/format.h>

namespace peal::store {

void Strangers::dropped(std::string_view why, TimePoint now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    attempts_ = 0;
  }
  if (++attempts_ >= limits_.attempts) pause_until_ = second_ + std::chrono::seconds(1);

  ++all_;
  last_ = why;
  ++unreported_;
  if (reported_ != TimePoint{} && now - reported_ < limits_.report_every) return;
  reported_ = now;
  const long count = std::exchange(unreported_, 0);
  const std::string more =
      count > 1 ? fmt::format(", and {} before it since the last report", count - 1) : "";
  report_(Severity::kWarning,
          fmt::format("dropped a connection to the job's store: {}{}", why, more));
}

std::string Strangers::summary() const {
  return all_ == 1
             ? fmt::format("a connection to the job's store was dropped: {}", last_)
             : fmt::format(
                   "{} connections to the job's store were dropped, the last one: {}", all_, last_);
}

}  // namespace peal::store
