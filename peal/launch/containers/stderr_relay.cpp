#include "peal/launch/containers/stderr_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "peal/system/thread.h"

namespace peal::launch::containers {
namespace {

constexpr std::size_t kLongestLine = 1000;

/// Without success if the reader is gone.
void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

StderrRelay::StderrRelay() : pipe_(make_pipe()), stop_(make_pipe()) {
  ::fcntl(pipe_.reader.get(), F_SETFL, O_NONBLOCK);  // the writer has flags of its own
}

void StderrRelay::start() {
  thread_ = start_thread([this] { work(); });
}

void StderrRelay::finish() {
  pipe_.writer.reset();
  stop_.writer.reset();
  if (thread_.joinable()) thread_.join();
  if (!line_.empty()) last_line_ = std::exchange(line_, {});
}

void StderrRelay::work() {
  std::array<pollfd, 2> sources = {pollfd{pipe_.reader.get(), POLLIN, 0},
                                   pollfd{stop_.reader.get(), POLLIN, 0}};
  while (true) {
    if (::poll(sources.data(), sources.size(), -1) < 0) continue;
    const bool is_last = sources[1].revents != 0;  // the process has written everything by now
    if (!pass_on() || is_last) return;
  }
}

/// Passes on all that is there. Returns false at the end of the pipe.
bool StderrRelay::pass_on() {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto got = ::read(pipe_.reader.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 && errno == EAGAIN;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    write_all(STDERR_FILENO, bytes);
    remember(bytes);
  }
}

void StderrRelay::remember(std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte != '\n') {
      if (line_.size() < kLongestLine) line_ += byte;
    } else if (!line_.empty()) {
      last_line_ = std::exchange(line_, {});
    }
  }
}

}  // namespace peal::launch::containers
