#include "peal/launch/kubernetes/pod_logs.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {
namespace {

/// A node with the pods of all its starts.
struct Node {
  const RoleJob& job;
  int index = 0;
  int number = 0;  // among all nodes
  const std::vector<Pod>& starts;
};

std::string name_of(const Node& node) { return fmt::format("{}-{}", node.job.role, node.index); }

/// The nodes of all ranks, or that of one rank.
std::vector<Node> nodes_of(const std::vector<RoleJob>& jobs, const std::optional<Rank>& wanted) {
  std::vector<Node> nodes;
  Rank rank = 0;  // of the node's first rank
  int number = 0;
  for (const RoleJob& job : jobs) {
    for (std::size_t place = 0; place < job.pods.size(); ++place, ++number) {
      const bool is_wanted = !wanted || (*wanted >= rank && *wanted < rank + job.ranks_per_node);
      rank += job.ranks_per_node;
      if (!is_wanted) continue;
      const int index = job.first_index + static_cast<int>(place);
      nodes.push_back({job, index, number, job.pods[place]});
    }
  }
  if (nodes.empty()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the job has no rank {}: its ranks are 0 to {}", wanted.value_or(0), rank - 1));
  }
  return nodes;
}

/// The log of each start of a node; nothing for a log that Kubernetes does not keep, or that does
/// not exist yet.
std::vector<std::optional<LogSource>> starts_of(const Node& node) {
  std::vector<std::optional<LogSource>> starts;
  for (const Pod& pod : node.starts) {
    const LogSource source{.node = node.number,
                           .role = node.job.role,
                           .index = node.index,
                           .pod = pod.name,
                           .may_grow = pod.phase == "Running"};
    for (int restart = 0; restart < pod.restarts; ++restart) {
      starts.emplace_back(std::nullopt);
    }
    if (pod.restarts > 0) {
      starts.back() = source;
      starts.back()->is_previous = true;
      starts.back()->may_grow = false;
    }
    starts.push_back(pod.phase == "Pending" ? std::nullopt : std::optional(source));
  }
  return starts;
}

[[noreturn]] void refuse_attempt(const Node& node, int attempt, std::size_t starts) {
  if (attempt >= static_cast<int>(starts)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("node {} ({}) has no attempt {}: it was started {} times, and the "
                            "first is attempt 0",
                            node.number,
                            name_of(node),
                            attempt,
                            starts));
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("Kubernetes has no log of attempt {} of node {} ({}): it has not started "
                          "yet, or its log was removed after a later restart",
                          attempt,
                          node.number,
                          name_of(node)));
}

void pass(const LogSource& source, std::string_view line, const LogSink& sink) {
  sink({.node = source.node, .role = source.role, .index = source.index, .text = line});
}

/// Takes complete lines off the front of `rest`.
void pass_lines(const LogSource& source, std::string& rest, const LogSink& sink) {
  std::size_t begin = 0;
  for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
    pass(source, std::string_view(rest).substr(begin, end - begin), sink);
    begin = end + 1;
  }
  rest.erase(0, begin);
}

void pass_rest(const LogSource& source, std::string& rest, const LogSink& sink) {
  if (rest.empty()) return;
  pass(source, rest, sink);
  rest.clear();
}

std::vector<std::string> words_for(const LogSource& source, Follow follow) {
  std::vector<std::string> words = {"logs", source.pod, "--container", kContainer};
  if (source.is_previous) words.emplace_back("--previous");
  if (follow == Follow::kUntilTheEnd) words.emplace_back("--follow");
  return words;
}

}  // namespace

LogSink filter_for(const std::vector<RoleJob>& jobs, const LogQuery& query, LogSink sink) {
  if (!query.rank || nodes_of(jobs, query.rank).front().job.ranks_per_node == 1) return sink;
  return [sink = std::move(sink), label = fmt::format("[{}] ", *query.rank)](const LogLine& line) {
    if (line.text.starts_with(label)) sink(line);
  };
}

std::vector<LogSource> log_sources(const std::vector<RoleJob>& jobs, const LogQuery& query) {
  std::vector<LogSource> sources;
  for (const Node& node : nodes_of(jobs, query.rank)) {
    const auto starts = starts_of(node);
    const int last = static_cast<int>(starts.size()) - 1;
    const int attempt = query.attempt.value_or(std::max(last, 0));
    const bool exists = attempt >= 0 && attempt <= last && starts[attempt].has_value();
    if (exists) sources.push_back(*starts[attempt]);
    if (!exists && query.rank) refuse_attempt(node, attempt, starts.size());
  }
  return sources;
}

std::vector<LogSource> sources_to_follow(const std::vector<RoleJob>& jobs, const LogQuery& query) {
  std::vector<LogSource> sources;
  for (const Node& node : nodes_of(jobs, query.rank)) {
    const auto starts = starts_of(node);
    for (int attempt = 0; attempt < static_cast<int>(starts.size()); ++attempt) {
      const auto& source = starts[attempt];
      if (!source || (query.attempt && *query.attempt != attempt)) continue;
      // A stream of the current container also follows; the previous one is history.
      if (!source->is_previous || query.attempt) sources.push_back(*source);
    }
  }
  return sources;
}

void copy_log(const Kubectl& kubectl, const LogSource& source, const LogSink& sink) {
  const std::vector<std::string> words = words_for(source, Follow::kNo);
  ProgramStream stream = kubectl.stream(words);
  std::string rest;
  while (true) {
    const std::string bytes = stream.read_some();
    if (bytes.empty()) break;
    rest += bytes;
    pass_lines(source, rest, sink);
  }
  pass_rest(source, rest, sink);
  // The stream gives no reason for a failure, so run the command again.
  if (stream.wait() != 0) kubectl.must(fmt::format("read the log of {}", source.pod), words);
}

std::vector<std::string> last_lines_of(const Kubectl& kubectl, const LogSource& source) {
  std::vector<std::string> words = words_for(source, Follow::kNo);
  words.emplace_back("--tail=20");
  std::string text = kubectl.run(words).out;
  std::vector<std::string> lines;
  const LogSink add = [&](const LogLine& line) { lines.emplace_back(line.text); };
  pass_lines(source, text, add);
  pass_rest(source, text, add);
  return lines;
}

void LogFollower::skip(const std::vector<LogSource>& sources) {
  for (const LogSource& source : sources) {
    Log log{.source = source};
    log.source.may_grow = false;
    logs_.emplace(source.pod, std::move(log));
  }
}

void LogFollower::add(const std::vector<LogSource>& sources) {
  for (const LogSource& source : sources) {
    const auto [place, is_new] = logs_.try_emplace(source.pod, Log{.source = source});
    Log& log = place->second;
    if (!is_new && (log.stream || !source.may_grow || !log.source.may_grow)) continue;
    log.to_skip = log.seen;
    log.stream.emplace(kubectl_.stream(words_for(source, Follow::kUntilTheEnd)));
  }
}

void LogFollower::read_some(Log& log) {
  std::string bytes = log.stream->read_some();
  if (bytes.empty()) {
    log.stream.reset();
    pass_rest(log.source, log.rest, sink_);
    return;
  }
  const std::size_t old = std::min(log.to_skip, bytes.size());
  log.to_skip -= old;
  bytes.erase(0, old);
  log.seen += bytes.size();
  log.rest += bytes;
  pass_lines(log.source, log.rest, sink_);
}

void LogFollower::read_until(Deadline deadline, const Interrupt& interrupt) {
  while (!deadline.passed()) {
    std::vector<pollfd> entries;
    std::vector<Log*> read;
    for (auto& [name, log] : logs_) {
      if (!log.stream) continue;
      entries.push_back({log.stream->fd(), POLLIN, 0});
      read.push_back(&log);
    }
    const auto left = deadline.within(kInterruptEvery).left();
    if (::poll(entries.data(), entries.size(), static_cast<int>(left.count())) > 0) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].revents != 0) read_some(*read[i]);
      }
    }
    let_interrupt(interrupt);
  }
}

bool LogFollower::is_idle() const {
  return std::ranges::none_of(logs_,
                              [](const auto& entry) { return entry.second.stream.has_value(); });
}

}  // namespace peal::launch::kubernetes
