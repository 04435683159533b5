#include "peal/named/timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::named {
namespace {

/// The text as a string of JSON, with its quotes.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

Timeline::Timeline(const std::string& path, Rounds rounds)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      rounds_(rounds),
      start_(Clock::now()) {
  if (!file_) throw system_error(fmt::format("cannot write the timeline {}", path), errno);
  const auto epoch = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  add(R"({"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "rounds"}})");
  add(fmt::format(R"({{"name": "process_sort_index", "ph": "M", "pid": 0, )"
                  R"("args": {{"sort_index": 0, "start_time_since_epoch_in_micros": {}}}}})",
                  epoch.count()));
}

void Timeline::submitted(const Request& request, TimePoint at) {
  add(fmt::format(R"({{"ph": "B", "name": "NEGOTIATE_{}", "ts": {}, "pid": {}, "tid": 0}})",
                  capitals_of(request.kind),
                  micros(at),
                  process_of(request)));
}

void Timeline::rank_is_ready(const Request& request, Rank rank) {
  add(fmt::format(R"({{"ph": "X", "name": "{}", "ts": {}, "dur": 0, "pid": {}, "tid": 0}})",
                  rank,
                  micros(Clock::now()),
                  process_of(request)));
}

void Timeline::began(const Request& request) {
  const std::int64_t now = micros(Clock::now());
  const int process = process_of(request);
  add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, "tid": 0}})", now, process));
  add(fmt::format(R"({{"ph": "B", "name": "{}", "ts": {}, "pid": {}, "tid": 0}})",
                  capitals_of(request.kind),
                  now,
                  process));
}

void Timeline::activity_began(const Request& request, std::string_view activity) {
  add(fmt::format(R"({{"ph": "B", "name": {}, "ts": {}, "pid": {}, "tid": 0}})",
                  quoted(activity),
                  micros(Clock::now()),
                  process_of(request)));
}

void Timeline::activity_ended(const Request& request) {
  add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, "tid": 0}})",
                  micros(Clock::now()),
                  process_of(request)));
}

void Timeline::ended(const Request& request) {
  std::string shape;
  for (const std::int64_t dimension : request.shape) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", dimension);
  }
  add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, "tid": 0, )"
                  R"("args": {{"dtype": "{}", "shape": "[{}]"}}}})",
                  micros(Clock::now()),
                  process_of(request),
                  name_of(request.dtype),
                  shape));
}

void Timeline::round_began() {
  if (rounds_ == Rounds::kNotShown) return;
  add(fmt::format(R"({{"ph": "i", "name": "CYCLE_START", "ts": {}, "pid": 0, "tid": 0, "s": "g"}})",
                  micros(Clock::now())));
}

std::int64_t Timeline::micros(TimePoint at) const {
  return std::chrono::duration_cast<std::chrono::microseconds>(at - start_).count();
}

int Timeline::process_of(const Request& request) {
  const auto [entry, is_new] =
      processes_.try_emplace(request.name, static_cast<int>(processes_.size()) + 1);
  if (is_new) {
    const int process = entry->second;
    add(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": {}}}}})",
                    process,
                    quoted(request.name)));
    add(fmt::format(R"({{"name": "process_sort_index", "ph": "M", "pid": {0}, )"
                    R"("args": {{"sort_index": {0}}}}})",
                    process));
  }
  return entry->second;
}

/// Overwrites the closing bracket of the array, in one call, so that the file is always complete.
/// An event that the disk cannot hold is left out, because training is more important.
void Timeline::add(std::string_view event) {
  const std::string text = fmt::format("{}{}\n]", length_ == 0 ? "[\n" : ",\n", event);
  const ssize_t written = ::pwrite(file_.get(), text.data(), text.size(), length_);
  if (written == static_cast<ssize_t>(text.size())) {
    length_ += written - 2;
  } else if (length_ > 0 && ::pwrite(file_.get(), "\n]", 2, length_) == 2) {
    static_cast<void>(::ftruncate(file_.get(), length_ + 2));
  }
}

void TimelineSwitch::start(const std::string& path, Timeline::Rounds rounds) {
  auto fresh = std::make_unique<Timeline>(path, rounds);
  timeline_.with([&](std::unique_ptr<Timeline>& timeline) { timeline = std::move(fresh); });
  running_.store(true);
}

void TimelineSwitch::stop() {
  running_.store(false);
  timeline_.with([](std::unique_ptr<Timeline>& timeline) { timeline.reset(); });
}

}  // namespace peal::named
