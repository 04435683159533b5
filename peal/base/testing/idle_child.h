// A child process for tests to stop, resume and kill.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace peal {

/// Does nothing until it is killed. Its name makes /proc/PID/stat easy to misread.
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
  /// Sends the signal, and waits until it has taken effect (waitid(2)). Does not reap the child.
  void signal_and_wait(int signal, int options) const {
    ::kill(pid_, signal);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, options | WNOWAIT);
  }
  /// Kills and reaps the child. Another process may get its number afterwards.
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
