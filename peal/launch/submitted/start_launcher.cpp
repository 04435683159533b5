#include "peal/launch/submitted/start_launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/fd.h"

namespace peal::launch::submitted {
namespace {

/// What posix_spawn(3) does in the new process before it executes the program.
class SpawnActions final {
 public:
  explicit SpawnActions(int log) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, log, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files_, log, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    // A shell script lets its background commands ignore SIGINT, and the ranks would inherit that.
    sigset_t all;
    sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_,
                               POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnActions() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::optional<jobs::LauncherProcess> start_launcher(const std::string& peal,
                                                    const jobs::JobFolder& folder) {
  const std::string path = folder.launcher_log();
  const Fd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) throw system_error("cannot write " + printable(path), errno);
  const SpawnActions actions(log.get());
  std::string program = peal;
  std::string command = "job";
  std::string argument = folder.path();
  const std::array<char*, 4> words = {program.data(), command.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(
      &pid, peal.c_str(), actions.files(), actions.attributes(), words.data(), ::environ);
  if (error != 0) throw system_error("cannot execute " + printable(peal), error);
  try {
    return jobs::process_record(pid);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace peal::launch::submitted
