#include "peal/launch/elastic/discovery_run.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/report.h"
#include "peal/system/pipe.h"
#include "peal/system/process_state.h"

namespace peal::launch::elastic {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1);
constexpr Duration kLongest = std::chrono::minutes(1);
constexpr std::size_t kMostText = 1 << 20;

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto begin = text.rfind('\n');
  return printable_line(begin == std::string::npos ? text : text.substr(begin + 1));
}

}  // namespace

DiscoveryRun::DiscoveryRun(std::string script, int slots, Variables environment, Guard& guard)
    : script_(std::move(script)),
      slots_(slots),
      environment_(std::move(environment)),
      guard_(guard) {}

bool DiscoveryRun::advance(TimePoint now, int process) {
  if (process_) {
    if (now - started_ >= kLongest && !std::exchange(is_killed_, true)) {
      guard_.signal(*process_, SIGKILL);
    }
    return false;
  }
  if (now - started_ < kEvery) return false;
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  for (const Pipe* pipe : {&out, &err}) ::fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
  out_ = {std::move(out.reader)};
  err_ = {std::move(err.reader)};
  const RankCommand command{.rank = process,
                            .program = "/bin/sh",
                            .arguments = {"sh", "-c", script_},
                            .environment = environment_,
                            .cpus = {}};
  guard_.start(command, {out.writer.get(), err.writer.get()});
  process_ = process;
  started_ = now;
  is_killed_ = false;
  return true;
}

void DiscoveryRun::add_to(std::vector<pollfd>& entries) const {
  for (const Capture* capture : {&out_, &err_}) {
    entries.push_back({capture->reader.get(), POLLIN, 0});
  }
}

void DiscoveryRun::read_some() {
  out_.read_some();
  err_.read_some();
}

void DiscoveryRun::Capture::read_some() {
  std::array<char, 4096> buffer;
  while (reader) {
    const auto got = ::read(reader.get(), buffer.data(), buffer.size());
    if (got < 0) return;
    if (got == 0) return reader.reset();
    const auto size = std::min(static_cast<std::size_t>(got), kMostText - text.size());
    text.append(buffer.data(), size);
  }
}

DiscoveryRun::Result DiscoveryRun::end(int status) {
  read_some();
  process_.reset();
  out_.reader.reset();
  err_.reader.reset();
  Result result;
  if (failed(status)) {
    result.problem =
        fmt::format("the discovery script \"{}\" {}",
                    printable(script_),
                    is_killed_ ? "ran for more than a minute" : describe_wait_status(status));
    if (!err_.text.empty()) result.problem += ": " + last_line(err_.text);
    return result;
  }
  try {
    result.hosts = parse_discovered_hosts(out_.text, slots_);
  } catch (const Error& error) {
    result.problem = fmt::format("the discovery script \"{}\" printed no list of hosts: {}",
                                 printable(script_),
                                 error.message());
  }
  return result;
}

DiscoveryRun::Result DiscoveryRun::end_without_start(int error) {
  process_.reset();
  return {.problem = fmt::format("cannot start the discovery script: {}", ::strerror(error))};
}

}  // namespace peal::launch::elastic
