// A process for tests to stop, to let go on and to kill.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace peal {

/// Does nothing until it is killed. By its name /proc/PID/stat is easily misread.
class IdleChild final {
 public:
  IdleChild() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_NAME, "a) Z b");
    ::alarm(60);
    while (true) ::pause();
  }
  ~IdleChild() {
    if (!has_ended_) end();
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits until what the signal does is done, as waitid(2) has it, and leaves it to be waited for.
  void signal_and_wait(int signal, int options) const {
    ::kill(pid_, signal);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, options | WNOWAIT);
  }
  /// Now its number may be another's.
  void end() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    has_ended_ = true;
  }

 private:
  pid_t pid_;
  bool has_ended_ = false;
};

}  // namespace peal
