// Writes the ranks' lines to the launcher's own stdout and stderr: whole lines, in one order for
// both, never waiting inside. Called by the launcher's loop.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>

#include "peal/launch/log_file.h"

namespace peal::launch {

enum class Channel : unsigned char { kOut = 0, kErr = 1 };

/// Where a channel goes; the descriptor stays the caller's, and its flags are left alone.
struct Target {
  int fd = -1;
  enum class Kind : unsigned char { kFile, kTerminal } kind = Kind::kFile;
};

/// Both channels share one queue, because both may be the same file (2>&1): a line is written to
/// its end before another begins.
class Screen final {
 public:
  Screen(Target out, Target err) : targets_{out, err} {}

  /// Queues prefix + text + newline.
  void line(Channel channel, std::string_view prefix, std::string_view text);
  /// On a terminal: shows prefix + text in the last row until there is something else to show.
  /// Elsewhere nothing.
  void preview(Channel channel, std::string_view prefix, std::string_view text);
  /// Takes the preview away.
  void clear_preview();
  bool is_terminal(Channel channel) const;

  /// So much is queued that the ranks should be made to wait.
  bool is_full() const { return queued_ > kFull; }
  bool is_empty() const { return queue_.empty(); }
  /// What must become writable for `write_some` to get on; -1: nothing is queued.
  int waits_for() const;
  /// Writes what can be written without waiting.
  void write_some();
  /// The reader of this channel has closed it. What is queued for it is dropped.
  bool is_closed(Channel channel) const { return closed_[index(channel)]; }
  /// What could not be written for another reason, such as a full disk. Later lines are tried
  /// again.
  const LostOutput& lost(Channel channel) const { return lost_[index(channel)]; }

 private:
  static constexpr std::size_t kFull = 1 << 20;

  struct Chunk {
    Channel channel;
    std::string text;
  };
  static std::size_t index(Channel channel) { return static_cast<std::size_t>(channel); }
  void push(Channel channel, std::string_view text);
  bool write_from_front();
  void give_up(const Chunk& chunk, int error);

  std::array<Target, 2> targets_;
  std::array<bool, 2> closed_{};
  std::array<LostOutput, 2> lost_ = {LostOutput{.where = "standard output"},
                                     LostOutput{.where = "standard error"}};
  std::deque<Chunk> queue_;
  std::size_t queued_ = 0;   // bytes in queue_
  std::size_t written_ = 0;  // bytes of the first chunk that are written
  std::string preview_;      // what stands in the terminal's last row
  Channel preview_channel_ = Channel::kOut;
};

}  // namespace peal::launch
