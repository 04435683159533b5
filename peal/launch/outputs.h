// The outputs of all ranks: the pipes that the ranks write into, and the way to the screen. Called
// by the launcher's loop.
#pragma once

#include <poll.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/base/units.h"
#include "peal/launch/log_file.h"
#include "peal/launch/options.h"
#include "peal/launch/rank_stream.h"
#include "peal/launch/screen.h"
#include "peal/launch/tail.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// For JobContext::terminal_width: the columns for a rank's line on the terminal `out`; 0 if `out`
/// is not a terminal.
int line_width(const LaunchOptions& options, const Target& out);

class Outputs final {
 public:
  /// Errors: resource (descriptors, the log directory).
  Outputs(const LaunchOptions& options, Target out, Target err);

  /// The pipe ends of the i-th rank: [2 i] its stdout, [2 i + 1] its stderr. The process that
  /// starts the ranks gets them. Then call `close_writers`, so that the end of an output is
  /// noticed.
  std::vector<int> writers() const;
  void close_writers() { writers_.clear(); }

  /// `add_to` appends the descriptors to poll. `handle` takes the same entries after poll, reads
  /// and writes. While the screen is full, the ranks are not read, and so they block.
  void add_to(std::vector<pollfd>& entries) const;
  void handle(std::span<const pollfd> entries);

  /// Stops reading from the ranks; an unfinished line is shown.
  void finish();
  /// Whether all output is read and written.
  bool is_done() const;
  bool is_full() const { return screen_.is_full(); }
  /// Whether the reader of the launcher's stdout has closed it.
  bool is_closed() const { return screen_.is_closed(Channel::kOut); }
  std::vector<std::string> last_lines(Rank rank) const;
  /// One entry for each output of the launcher and each log with missing bytes.
  std::vector<LostOutput> lost() const;

 private:
  void add_stream(const LaunchOptions& options, Rank rank, Channel channel);
  std::size_t index_of(Rank rank) const { return static_cast<std::size_t>(rank - first_rank_); }

  const Rank first_rank_;
  Screen screen_;
  std::vector<Tail> tails_;
  std::vector<std::unique_ptr<RankStream>> streams_;
  std::vector<Fd> writers_;
};

}  // namespace peal::launch
