// One rank of a group of two, for tests.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "peal/backends/native/native.h"
#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::native {

/// Joins a group of two ranks as `rank`, with these `options` beyond those of the connection. The
/// group's operations have `timeout`.
inline ProcessGroupPtr join_pair(Rank rank,
                                 std::unique_ptr<transport::Transport> connected,
                                 Timeout timeout,
                                 Options options = {}) {
  options.rank = rank;
  options.world_ranks = {0, 1};
  options.connect =
      [held = std::make_shared<std::unique_ptr<transport::Transport>>(std::move(connected))](
          auto&&, auto&&, Deadline, auto&&, const UseTransport& use) { use(std::move(*held)); };
  return std::make_shared<ProcessGroup>(
      make_backend(std::move(options), Deadline::after(std::chrono::minutes(5))),
      ProcessGroup::Options{.timeout = timeout});
}

}  // namespace peal::native
