#include "peal/launch/jobs/launcher_process.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/process_state.h"

namespace peal::launch::jobs {
namespace {

std::string first_word_of(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

std::string own_host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Machine this_machine() {
  std::error_code unknown;
  return {.host = own_host_name(),
          .machine_id = first_word_of("/etc/machine-id"),
          .boot_id = first_word_of("/proc/sys/kernel/random/boot_id"),
          .pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string()};
}

LauncherProcess process_record(std::int64_t pid) {
  const std::optional<std::uint64_t> start_time = start_time_of_process(pid);
  if (!start_time) {
    throw Error(ErrorKind::kResource,
                fmt::format("process {} has ended, or /proc is not mounted", pid));
  }
  return {.machine = this_machine(), .pid = pid, .start_time = *start_time};
}

LauncherProcess this_process() { return process_record(::getpid()); }

Liveness liveness_of(
    const LauncherProcess& launcher,
    const Machine& here,
    const std::function<std::optional<std::uint64_t>(std::int64_t)>& start_time_of) {
  const Machine& there = launcher.machine;
  if (here.boot_id.empty() || there.boot_id.empty()) return Liveness::kNotVisible;
  if (there.boot_id != here.boot_id) {
    // Two machines may have one name, such as localhost, or one id, if their disks were copied.
    const bool is_same_machine = there.host == here.host && there.machine_id == here.machine_id;
    return is_same_machine ? Liveness::kGone : Liveness::kNotVisible;
  }
  if (there.pid_namespace != here.pid_namespace || here.pid_namespace.empty()) {
    return Liveness::kNotVisible;
  }
  return start_time_of(launcher.pid) == launcher.start_time ? Liveness::kAlive : Liveness::kGone;
}

Liveness liveness_of(const LauncherProcess& launcher) {
  return liveness_of(launcher, this_machine(), start_time_of_process);
}

std::string describe(const LauncherProcess& launcher) {
  return fmt::format("its launcher (pid {} on {})", launcher.pid, printable(launcher.machine.host));
}

}  // namespace peal::launch::jobs
