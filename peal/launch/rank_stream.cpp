#include "peal/launch/rank_stream.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "peal/launch/label.h"

namespace peal::launch {

RankStream::RankStream(Way way, Screen& screen, Tail& tail)
    : way_(std::move(way)),
      screen_(screen),
      tail_(tail),
      splitter_([this](LineEnd end, std::string_view line) { take(end, line); }) {}

void RankStream::read_some() {
  std::array<char, 1 << 16> buffer;
  const auto got = ::read(way_.pipe.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return finish();
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  way_.log.append(bytes);
  splitter_.feed(bytes);
  if (way_.display == Display::kHide) return;
  // A prompt, or the current state of a progress bar.
  if (way_.progress == Progress::kShow && !splitter_.unfinished().empty()) {
    screen_.preview(way_.channel, prefix(), splitter_.unfinished());
  }
}

void RankStream::finish() {
  splitter_.finish();
  way_.pipe.reset();
  way_.log.close();
}

void RankStream::take(LineEnd end, std::string_view line) {
  if (end == LineEnd::kReturn) {
    if (way_.progress == Progress::kHide || screen_.is_terminal(way_.channel)) return;
  } else {
    tail_.add(line);
  }
  if (way_.display == Display::kShow) screen_.line(way_.channel, prefix(), line);
}

std::string RankStream::prefix() const {
  return with_time(way_.timestamps, way_.label, std::chrono::system_clock::now());
}

}  // namespace peal::launch
