#include "peal/launch/options.h"

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {

void check(const LaunchOptions& options) {
  if (options.command.empty() || options.command.front().empty()) {
    throw Error(ErrorKind::kUsage, "no command to run: put it last, as in: peal run -n 2 ./train");
  }
  if (options.ranks < 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("cannot start {} ranks: -n takes how many to start, 1 or more", options.ranks));
  }
  if (options.grace < Timeout(0)) {
    throw Error(ErrorKind::kUsage, "--grace takes seconds, 0 or more");
  }
}

}  // namespace peal::launch
