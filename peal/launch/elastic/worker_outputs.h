// The outputs of the workers of an elastic job, which come and go: their way to the screen and to
// log files. Called by driver.cpp.
#pragma once

#include <poll.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/launch/log_file.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_stream.h"
#include "peal/launch/screen.h"
#include "peal/launch/tail.h"
#include "peal/system/fd.h"

namespace peal::launch::elastic {

/// The pipe ends that a new worker gets.
struct WorkerWriters {
  Fd out;
  Fd err;
};

class WorkerOutputs final {
 public:
  /// `options`: of the logs, the labels and the timestamps; must outlive this object.
  WorkerOutputs(Screen& screen, const LaunchOptions& options)
      : screen_(screen), options_(options) {}

  /// `name` labels the lines: "localhost[0]". `log` is the unique name of the logs: "localhost-0".
  /// Errors: resource.
  WorkerWriters add(int worker, const std::string& name, const std::string& log);

  /// As Outputs: `add_to` appends the descriptors to poll, `handle` takes the same entries.
  void add_to(std::vector<pollfd>& entries) const;
  void handle(std::span<const pollfd> entries);

  /// Reads what a worker that has ended has written.
  void drain(int worker);
  /// Stops reading from all workers; unfinished lines are shown.
  void finish();
  bool are_closed() const;
  std::vector<std::string> last_lines(int worker) const;
  std::vector<LostOutput> lost() const;

 private:
  struct Streams {
    Tail tail;
    std::unique_ptr<RankStream> out;
    std::unique_ptr<RankStream> err;
  };

  std::unique_ptr<RankStream> open(Fd reader,
                                   Channel channel,
                                   const std::string& name,
                                   const std::string& log,
                                   Tail& tail) const;
  /// Forgets streams that have ended. Their last lines stay.
  void forget_ended();

  Screen& screen_;
  const LaunchOptions& options_;
  std::map<int, Streams> streams_;                      // of workers whose outputs are open
  std::map<int, std::vector<std::string>> last_lines_;  // of the others
  std::vector<LostOutput> lost_;                        // of the others
};

}  // namespace peal::launch::elastic
