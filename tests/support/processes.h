// Ranks as real processes: started, watched, killed and frozen by a test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/system/fd.h"

namespace peal::testing {

/// How long a test waits for the next step of its processes, which takes seconds on an idle
/// machine. A step that takes longer counts as a hang.
inline constexpr std::chrono::seconds kLimit{300};

/// Kills all processes that are left when it goes out of scope, by SIGKILL.
class Processes {
 public:
  using Variables = std::map<std::string, std::string>;

  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  /// Starts a program with variables added to the environment of this process. The default of
  /// PEAL_TIMEOUT is an hour, so that the test notices a hang first, after kLimit.
  void start(const std::vector<std::string>& command, const Variables& variables);

  struct Ended {
    bool in_time = false;  // the process ended by itself before the deadline
    int code = -1;         // exit code; minus the signal that ended the process
    std::string output;    // of the process, on stdout and stderr
  };
  /// Waits for all processes, in the order of their start.
  std::vector<Ended> wait(Deadline deadline);

  void signal(std::size_t which, int signal) const;
  /// The output of a process until now.
  const std::string& output(std::size_t which);
  /// Waits until a process has ended, without asking how; false if the deadline comes first.
  bool wait_for_end(std::size_t which, Deadline deadline);
  /// Waits until a process has written a text that contains `text` or has ended.
  bool wait_for_output_or_end(std::size_t which, const std::string& text, Deadline deadline);
  /// Waits until a process has written a text that contains `text`; false if the deadline comes
  /// first.
  bool wait_for_output(std::size_t which, const std::string& text, Deadline deadline);

 private:
  struct Process {
    pid_t pid = -1;
    Fd output;
    std::string text;
  };
  static bool has_ended(const Process& process);
  static void read_what_is_there(Process& process);
  /// Reads from all processes: a process whose output is not read blocks when the pipe is full.
  void read_all();

  std::vector<Process> processes_;
};

/// A unique path in the system's temporary folder; removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Processes wait at the gate until the test opens it for all at once. So a time that is measured
/// from there, such as the timeout of a group, does not include the start of the processes.
class StartSignal {
 public:
  StartSignal();
  /// The environment variables by which a process finds the gate.
  Processes::Variables variables() const;
  /// Opens the gate, also for processes that come later.
  void open();

 private:
  TemporaryFolder folder_;
  Fd opened_;
};

/// Called by a process: prints "ready" and waits. Returns at once if the process has no gate.
void wait_at_gate();

/// Variables for a process that a test stops and continues. LeakSanitizer's check at the end of
/// such a process can wait for ever: it attaches to each thread by ptrace, and a SIGSTOP can come
/// in between.
Processes::Variables without_leak_check();

}  // namespace peal::testing
