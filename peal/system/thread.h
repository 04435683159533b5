// Starts a thread, which may fail under a limit of processes or without memory.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "peal/base/error.h"

namespace peal {

/// Errors: resource.
template <class... BodyAndArguments>
std::thread start_thread(BodyAndArguments&&... body) {
  try {
    return std::thread(std::forward<BodyAndArguments>(body)...);
  } catch (const std::system_error& error) {
    throw system_error("cannot start a thread (see `ulimit -u`, and the container's limit of pids)",
                       error.code().value());
  }
}

}  // namespace peal
