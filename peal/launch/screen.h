// Writes the lines of the ranks to the launcher's stdout and stderr: whole lines, in one order for
// both, without blocking. Called by the launcher's loop.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>

#include "peal/launch/log_file.h"

namespace peal::launch {

enum class Channel : unsigned char { kOut = 0, kErr = 1 };

/// The destination of a channel. The caller keeps the descriptor, and its flags are not changed.
struct Target {
  int fd = -1;
  enum class Kind : unsigned char { kFile, kTerminal } kind = Kind::kFile;
};

/// A descriptor of this process, as a terminal if it is one that can erase lines.
Target target_of(int fd);

/// Both channels share one queue, because both may be the same file (2>&1): a line is completed
/// before another begins.
class Screen final {
 public:
  Screen(Target out, Target err) : targets_{out, err} {}

  /// Queues prefix + text + newline.
  void line(Channel channel, std::string_view prefix, std::string_view text);
  /// On a terminal: shows prefix + text in the last row until the next line or preview. Elsewhere
  /// does nothing.
  void preview(Channel channel, std::string_view prefix, std::string_view text);
  void clear_preview();
  bool is_terminal(Channel channel) const;

  /// Whether so much is queued that the ranks should not be read.
  bool is_full() const { return queued_ > kFull; }
  bool is_empty() const { return queue_.empty(); }
  /// The descriptor that must become writable for `write_some` to proceed; -1: nothing is queued.
  int waits_for() const;
  /// Writes as much as is possible without blocking.
  void write_some();
  /// Whether the reader of this channel has closed it. Text that is queued for it is dropped.
  bool is_closed(Channel channel) const { return closed_[index(channel)]; }
  /// Text that could not be written for another reason, such as a full disk. Later lines are
  /// written again if possible.
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
  std::string preview_;      // the text in the terminal's last row
  Channel preview_channel_ = Channel::kOut;
};

}  // namespace peal::launch
