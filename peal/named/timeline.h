// Writes what happens to each operation by name as a file of Chrome's trace format, for
// chrome://tracing and Perfetto.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/named/request.h"
#include "peal/system/fd.h"

namespace peal::named {

/// The file is a complete JSON array after each event, also if the process is killed.
/// Source: the format of Horovod's timeline: one process of the trace for each name, with the
/// phases NEGOTIATE_<KIND> and <KIND> and activities inside.
/// Threads: one at a time.
class Timeline final {
 public:
  enum class Rounds : std::uint8_t { kNotShown, kMarked };

  /// Creates or truncates the file. Errors: resource.
  Timeline(const std::string& path, Rounds rounds);

  void submitted(const Request& request, TimePoint at);
  /// `rank` has submitted the operation with this name. Called only for operations that are not in
  /// the cache.
  void rank_is_ready(const std::string& name, Rank rank);
  /// The ranks agree, and the operation begins. Also for an operation that this rank has not
  /// submitted.
  void began(const Request& request);
  void activity_began(const Request& request, std::string_view activity);
  void activity_ended(const Request& request);
  void ended(const Request& request);
  /// Ends all phases of the operation.
  void failed(const Request& request);
  void round_began();

 private:
  /// Each name of an operation is a process of the trace.
  struct Process {
    int number = 0;
    int open = 0;  // phases
  };

  void add(std::string_view event);
  std::int64_t micros(TimePoint at) const;
  Process& process_of(const std::string& name);
  void begin_phase(const Request& request, std::string_view phase, std::int64_t at);
  void end_phase(const Request& request, std::int64_t at);

  Fd file_;
  std::int64_t length_ = 0;  // without the closing bracket
  Rounds rounds_;
  TimePoint start_;
  std::map<std::string, Process, std::less<>> processes_;
};

/// Starts and stops the timeline of a process while operations run.
/// Threads: any number at once.
class TimelineSwitch final {
 public:
  /// Replaces a timeline that runs. Errors: resource.
  void start(const std::string& path, Timeline::Rounds rounds);
  void stop();

  /// Calls use(timeline) if there is one. Cost without a timeline: a load.
  template <class Use>
  void with(Use&& use) {
    if (!running_.load(std::memory_order_relaxed)) return;
    timeline_.with([&](std::unique_ptr<Timeline>& timeline) {
      if (timeline) use(*timeline);
    });
  }

 private:
  std::atomic<bool> running_ = false;
  Guarded<std::unique_ptr<Timeline>> timeline_;
};

}  // namespace peal::named
