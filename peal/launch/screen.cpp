#include "peal/launch/screen.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace peal::launch {
namespace {

constexpr std::string_view kEraseRow = "\r\x1b[K";

bool can_write(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

Target target_of(int fd) {
  const char* terminal = std::getenv("TERM");
  const bool can_erase =
      ::isatty(fd) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
  return {fd, can_erase ? Target::Kind::kTerminal : Target::Kind::kFile};
}

void Screen::line(Channel channel, std::string_view prefix, std::string_view text) {
  if (is_terminal(channel)) clear_preview();
  std::string line;
  line.reserve(prefix.size() + text.size() + 1);
  line.append(prefix).append(text).push_back('\n');
  push(channel, line);
}

void Screen::preview(Channel channel, std::string_view prefix, std::string_view text) {
  if (!is_terminal(channel)) return;
  std::string wanted;
  wanted.append(prefix).append(text);
  if (wanted == preview_) return;
  clear_preview();
  push(channel, wanted);
  preview_ = std::move(wanted);
  preview_channel_ = channel;
}

void Screen::clear_preview() {
  if (!preview_.empty()) push(preview_channel_, kEraseRow);
  preview_.clear();
}

bool Screen::is_terminal(Channel channel) const {
  return targets_[index(channel)].kind == Target::Kind::kTerminal;
}

int Screen::waits_for() const {
  return queue_.empty() ? -1 : targets_[index(queue_.front().channel)].fd;
}

void Screen::write_some() {
  while (!queue_.empty() && write_from_front()) {
  }
}

/// Queues text. A chunk is made of whole lines and, except for one long line, at most PIPE_BUF
/// bytes.
void Screen::push(Channel channel, std::string_view text) {
  if (is_closed(channel)) return;
  queued_ += text.size();
  if (!queue_.empty()) {
    Chunk& last = queue_.back();
    if (last.channel == channel && last.text.size() + text.size() <= PIPE_BUF) {
      last.text += text;
      return;
    }
  }
  queue_.push_back({channel, std::string(text)});
}

/// A pipe that poll reports as writable accepts PIPE_BUF bytes without blocking, although the
/// descriptor is blocking. Making it non-blocking would affect all processes that share it, such as
/// the shell.
bool Screen::write_from_front() {
  Chunk& chunk = queue_.front();
  if (!is_closed(chunk.channel)) {
    const int fd = targets_[index(chunk.channel)].fd;
    if (!can_write(fd)) return false;
    const auto size = std::min<std::size_t>(chunk.text.size() - written_, PIPE_BUF);
    const auto wrote = ::write(fd, chunk.text.data() + written_, size);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (wrote < 0) give_up(chunk, errno);
    if (wrote >= 0) written_ += static_cast<std::size_t>(wrote);
    if (wrote >= 0 && written_ < chunk.text.size()) return true;
  }
  queued_ -= chunk.text.size();
  written_ = 0;
  queue_.pop_front();
  return true;
}

void Screen::give_up(const Chunk& chunk, int error) {
  closed_[index(chunk.channel)] = error == EPIPE;
  if (error == EPIPE) return;
  LostOutput& lost = lost_[index(chunk.channel)];
  if (lost.error == 0) lost.error = error;
  lost.bytes += chunk.text.size() - written_;
}

}  // namespace peal::launch
