// What the launcher of a submitted job must know besides the job: kept in its folder as
// Submission::runner_options. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "peal/launch/host_list.h"

namespace peal::launch::submitted {

struct LauncherOptions {
  std::vector<HostSlots> hosts{};  // empty: the runner has its own
  std::string peal{};              // the path of the program peal on the hosts; empty: as here
  friend bool operator==(const LauncherOptions&, const LauncherOptions&) = default;
};

/// {"--hosts=a:2,b:1", "--peal-path=/opt/peal/bin/peal"}
std::vector<std::string> encode(const LauncherOptions& options);
/// Ignores texts that it does not know: a newer peal may have written them.
/// Errors: usage, for a malformed list of hosts.
LauncherOptions decode_launcher_options(std::span<const std::string> texts);

}  // namespace peal::launch::submitted
