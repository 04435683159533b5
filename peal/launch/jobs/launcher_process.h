// Which process runs a job, and whether that process still lives. So a job whose launcher was
// killed, or whose machine has lost its power, is never shown as running.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace peal::launch::jobs {

/// A machine, as its processes see it.
struct Machine {
  std::string host{};           // its name
  std::string machine_id{};     // of /etc/machine-id; empty: unknown
  std::string boot_id{};        // changes with each start of the machine
  std::string pid_namespace{};  // containers count their processes separately
  friend bool operator==(const Machine&, const Machine&) = default;
};
Machine this_machine();

struct LauncherProcess {
  Machine machine{};
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;  // in clock ticks; a later process may have the same pid
  friend bool operator==(const LauncherProcess&, const LauncherProcess&) = default;
};

/// The record of a process on this machine. Errors: resource, if the process has ended.
LauncherProcess process_record(std::int64_t pid);
/// The record of this process. Errors: resource (/proc is missing).
LauncherProcess this_process();

enum class Liveness : unsigned char {
  kAlive,
  kGone,
  kNotVisible,  // from here: it is on another host, or in another container
};

/// Pure. `start_time_of` returns the start time of a process of `here`, and nothing if it has
/// ended.
/// - Another start of the same machine: gone.
/// - The same start of the machine, and the same count of processes: as `start_time_of` says.
/// - Else: not visible.
Liveness liveness_of(
    const LauncherProcess& launcher,
    const Machine& here,
    const std::function<std::optional<std::uint64_t>(std::int64_t)>& start_time_of);
/// As seen from this process.
Liveness liveness_of(const LauncherProcess& launcher);

/// "its launcher (pid 12 on node1)", for sentences.
std::string describe(const LauncherProcess& launcher);

}  // namespace peal::launch::jobs
