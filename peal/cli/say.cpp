#include "peal/cli/say.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "peal/launch/supervisor.h"

namespace peal::cli {

void say(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void say(std::string_view text, const launch::SignalReader& signals) {
  while (!text.empty()) {
    std::array<pollfd, 2> entries = {pollfd{STDERR_FILENO, POLLOUT, 0},
                                     pollfd{signals.fd(), POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[0].revents == 0 &&
        ::poll(entries.data(), 1, static_cast<int>(launch::kLastOutput.count())) == 0) {
      return;
    }
    // A pipe with room takes this many bytes without blocking.
    const auto written =
        ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void say_notices(std::span<const std::string> notices) {
  for (const std::string& notice : notices) say("peal: " + notice + "\n");
}

}  // namespace peal::cli
