#include "peal/launch/runner.h"

#include <ostream>

namespace peal::launch {

std::string_view name_of(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kPreparing:
      return "preparing";
    case JobState::kRunning:
      return "running";
    case JobState::kSucceeded:
      return "succeeded";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelling:
      return "cancelling";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kUnknown:
      break;
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, JobState state) { return out << name_of(state); }

bool has_ended(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

}  // namespace peal::launch
