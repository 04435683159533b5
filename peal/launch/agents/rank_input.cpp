#include "peal/launch/agents/rank_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

/// Opens a pipe or a terminal again, without blocking. Another process may read from it, too, and
/// take the bytes between poll and read. Returns nothing for other files, because a new descriptor
/// would begin at the start of the file.
Fd try_reopen(int fd) {
  struct stat status {};
  const bool is_pipe = ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
  if (!is_pipe && ::isatty(fd) == 0) return {};
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// Whether another job of the shell owns the terminal. No other file has an owner.
bool is_in_background(int fd) {
  const pid_t owner = ::tcgetpgrp(fd);
  return owner >= 0 && owner != ::getpgrp();
}

}  // namespace

InputSource::InputSource(int fd) : own_(try_reopen(fd)), fd_(own_ ? own_.get() : fd) {}

int InputSource::waits_for() const {
  return has_ended_ || !is_answered_ || is_in_background(fd_) ? -1 : fd_;
}

std::optional<std::string> InputSource::try_next() {
  const int fd = waits_for();
  if (fd < 0) return std::nullopt;
  std::string bytes(kMostInput, '\0');
  auto got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && errno == ENOTSOCK) {
    pollfd entry{fd, POLLIN, 0};
    if (::poll(&entry, 1, 0) != 1) return std::nullopt;
    got = ::read(fd, bytes.data(), bytes.size());
  }
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  has_ended_ = bytes.empty();
  is_answered_ = false;
  return bytes;
}

Fd InputSink::open() {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
  writer_ = std::move(pipe.writer);
  bytes_.clear();
  return std::move(pipe.reader);
}

void InputSink::take(std::string bytes) {
  if (bytes.empty()) writer_.reset();
  bytes_ = std::move(bytes);
}

std::optional<FrameKind> InputSink::write_some() {
  if (bytes_.empty()) return std::nullopt;
  while (writer_ && !bytes_.empty()) {
    const auto wrote = ::write(writer_.get(), bytes_.data(), bytes_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return std::nullopt;
    if (wrote < 0) {
      writer_.reset();  // the rank has closed its stdin, or has ended
    } else {
      bytes_.erase(0, static_cast<std::size_t>(wrote));
    }
  }
  bytes_.clear();
  return writer_ ? FrameKind::kInputTaken : FrameKind::kInputClosed;
}

}  // namespace peal::launch::agents
