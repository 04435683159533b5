// An elastic job as real processes: hosts that the test changes, workers that it kills, and the
// lines that they print.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/leftovers.h"
#include "tests/support/processes.h"

namespace peal::testing {

/// A line of worker.cpp at the beginning of a round.
struct RoundLine {
  pid_t pid = 0;
  int round = 0;
  int rank = 0;
  int size = 0;
  std::string where;  // "localhost[0]"
  std::int64_t step = 0;
};

struct ElasticSettings {
  int min_ranks = 1;
  int max_ranks = 0;
  int cooldown = 0;
  int timeout = 60;
  int reset_limit = 0;
  std::string peal_timeout = "3600";  // of meetings and operations, in seconds
  std::string records = "";           // PEAL_FLIGHT_DIR; empty: a private folder
};

class ElasticJob {
 public:
  ElasticJob();

  /// What the discovery script prints from now on: "localhost:2 127.0.0.1:1".
  void set_hosts(const std::string& hosts) const;
  std::string discovery_script() const;

  /// `command`: the arguments of worker.cpp.
  void start(const std::vector<std::string>& command,
             const ElasticSettings& settings = {},
             const std::string& script = "");

  /// Lets workers that train end well.
  void finish() const;

  bool wait_for(const std::string& text);
  const std::string& output() { return processes_.output(0); }
  /// All lines of workers about beginnings of rounds, in the order in which they were shown.
  std::vector<RoundLine> rounds();
  /// Waits until all workers of the round, which has this size, have begun it.
  bool wait_for_round(int round, int size);
  /// The pid of a rank in the newest round of which it has told.
  pid_t pid_of(int round, int rank);
  void signal_launcher(int signal) { processes_.signal(0, signal); }

  /// Waits for the end of the launcher. `code` and `output` of Ended; fails if something is left.
  Processes::Ended wait();

 private:
  std::string mark() const;

  TemporaryFolder folder_;
  Processes processes_;
  Leftovers belongings_;
};

}  // namespace peal::testing
