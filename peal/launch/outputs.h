// All outputs of all ranks: the pipes they write into, and the way from there to the screen. Called
// by the launcher's loop.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/fd.h"
#include "peal/base/units.h"
#include "peal/launch/log_file.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_stream.h"
#include "peal/launch/screen.h"
#include "peal/launch/tail.h"

namespace peal::launch {

class Outputs final {
 public:
  /// Errors: resource (descriptors, the log directory).
  Outputs(const LaunchOptions& options, Target out, Target err);

  /// The ends that rank r writes to: [2 r] its stdout, [2 r + 1] its stderr. Whoever starts the
  /// ranks gets them, then `close_writers` lets their end be seen.
  std::vector<int> writers() const;
  void close_writers() { writers_.clear(); }

  /// Appends what to poll for, and, given the same entries after poll, does what can be done.
  /// While the screen is full the ranks are not read, and so wait.
  void add_to(std::vector<pollfd>& entries) const;
  void handle(std::span<const pollfd> entries);

  /// Waits for no more from the ranks; what they have begun is a line.
  void finish();
  /// Everything is read and written.
  bool is_done() const;
  bool is_full() const { return screen_.is_full(); }
  /// Whoever read the launcher's stdout has closed it.
  bool is_closed() const { return screen_.is_closed(Channel::kOut); }
  std::vector<std::string> last_lines(Rank rank) const;
  /// One for each of the launcher's outputs and each log that lacks something.
  std::vector<LostOutput> lost() const;

 private:
  void add_stream(const LaunchOptions& options, Rank rank, Channel channel);

  Screen screen_;
  std::vector<Tail> tails_;
  std::vector<std::unique_ptr<RankStream>> streams_;
  std::vector<Fd> writers_;
};

}  // namespace peal::launch
