// The logs of a job's pods: which logs a query selects, and lines from several pods at once. Called
// by the runner.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/kubernetes/cluster_state.h"
#include "peal/launch/kubernetes/kubectl.h"
#include "peal/launch/runner.h"

namespace peal::launch::kubernetes {

/// The log of one start of a node.
struct LogSource {
  Rank node = 0;
  std::string role{};
  int index = 0;
  std::string pod{};
  bool is_previous = false;  // of the container before its last restart in place
  bool may_grow = false;     // the pod still runs
  friend bool operator==(const LogSource&, const LogSource&) = default;
};

/// A sink that passes only the lines of the query's rank: the log of a node has all of its ranks.
LogSink filter_for(const std::vector<RoleJob>& jobs, const LogQuery& query, LogSink sink);

/// The logs that exist for a query without `follow`. Pure.
/// Errors: usage, if the query names a rank or an attempt that does not exist or has no log; the
///   text says which exist.
std::vector<LogSource> log_sources(const std::vector<RoleJob>& jobs, const LogQuery& query);

/// The logs of all starts that a query with `follow` may show and that exist now. Pure.
/// Errors: usage, if the job has no such rank.
std::vector<LogSource> sources_to_follow(const std::vector<RoleJob>& jobs, const LogQuery& query);

/// Passes the lines of one log to the sink, to its end. Errors: resource.
void copy_log(const Kubectl& kubectl, const LogSource& source, const LogSink& sink);

/// The last lines of one log, at most 20; none if kubectl cannot read the log. Errors: resource.
std::vector<std::string> last_lines_of(const Kubectl& kubectl, const LogSource& source);

/// Follows several logs, with one kubectl for each.
class LogFollower final {
 public:
  LogFollower(const Kubectl& kubectl, LogSink sink) : kubectl_(kubectl), sink_(std::move(sink)) {}

  /// Follows the sources that are new, and those whose stream has ended too early.
  void add(const std::vector<LogSource>& sources);
  /// Marks these sources as seen, so that their lines are not passed.
  void skip(const std::vector<LogSource>& sources);
  /// Passes lines to the sink until the deadline.
  void read_until(Deadline deadline, const Interrupt& interrupt);
  bool is_idle() const;

 private:
  struct Log {
    LogSource source;
    std::optional<ProgramStream> stream{};
    std::size_t seen = 0;     // bytes that were passed on or are in `rest`
    std::size_t to_skip = 0;  // bytes of a new stream that were seen before
    std::string rest{};       // of a line that has no end yet
  };
  void read_some(Log& log);

  const Kubectl& kubectl_;
  const LogSink sink_;
  std::map<std::string, Log> logs_{};  // by the name of the pod
};

}  // namespace peal::launch::kubernetes
