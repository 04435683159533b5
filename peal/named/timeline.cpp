#include "peal/named/timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
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

void Timeline::begin_phase(const Request& request, std::string_view phase, std::int64_t at) {
  Process& process = process_of(request.name);
  ++process.open;
  add(fmt::format(R"({{"ph": "B", "name": {}, "ts": {}, "pid": {}, "tid": 0}})",
                  quoted(phase),
                  at,
                  process.number));
}

/// Does nothing without an open phase: the timeline may have started in the middle of it.
void Timeline::end_phase(const Request& request, std::int64_t at) {
  Process& process = process_of(request.name);
  if (process.open == 0) return;
  --process.open;
  add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, "tid": 0}})", at, process.number));
}

void Timeline::submitted(const Request& request, TimePoint at) {
  begin_phase(request,
              fmt::format("NEGOTIATE_{}", capitals_of(request.kind)),
              std::max<std::int64_t>(micros(at), 0));
}

void Timeline::rank_is_ready(const std::string& name, Rank rank) {
  add(fmt::format(R"({{"ph": "X", "name": "{}", "ts": {}, "dur": 0, "pid": {}, "tid": 0}})",
                  rank,
                  micros(Clock::now()),
                  process_of(name).number));
}

void Timeline::began(const Request& request) {
  const std::int64_t now = micros(Clock::now());
  end_phase(request, now);
  begin_phase(request, capitals_of(request.kind), now);
}

void Timeline::activity_began(const Request& request, std::string_view activity) {
  begin_phase(request, activity, micros(Clock::now()));
}

void Timeline::activity_ended(const Request& request) { end_phase(request, micros(Clock::now())); }

void Timeline::ended(const Request& request) {
  Process& process = process_of(request.name);
  if (process.open == 0) return;
  --process.open;
  std::string shape;
  for (const std::int64_t dimension : request.shape) {
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", dimension);
  }
  add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}, "tid": 0, )"
                  R"("args": {{"dtype": "{}", "shape": "[{}]"}}}})",
                  micros(Clock::now()),
                  process.number,
                  name_of(request.dtype),
                  shape));
}

void Timeline::failed(const Request& request) {
  const std::int64_t now = micros(Clock::now());
  while (process_of(request.name).open > 0) end_phase(request, now);
}

void Timeline::round_began() {
  if (rounds_ == Rounds::kNotShown) return;
  add(fmt::format(R"({{"ph": "i", "name": "CYCLE_START", "ts": {}, "pid": 0, "tid": 0, "s": "g"}})",
                  micros(Clock::now())));
}

std::int64_t Timeline::micros(TimePoint at) const {
  return std::chrono::duration_cast<std::chrono::microseconds>(at - start_).count();
}

Timeline::Process& Timeline::process_of(const std::string& name) {
  const auto [entry, is_new] = processes_.try_emplace(name);
  if (is_new) {
    const int process = entry->second.number = static_cast<int>(processes_.size());
    add(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": {}}}}})",
                    process,
                    quoted(name)));
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
