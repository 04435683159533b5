// Runs the program `peal` under test: starts it, writes to it, sends signals and waits, each within
// a bounded time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/system/fd.h"

namespace peal::cli {

/// Returns when `holds` is true. Throws if it is still false after far more time than any test
/// needs.
void wait_until(const std::function<bool()>& holds);

/// The stdin, stdout and stderr of the program.
enum class Standard : unsigned char {
  kPipes,
  kTerminal,  // one terminal for all three, the controlling terminal of a new session
};

/// The initial disposition of SIGHUP in the program.
enum class Hangup : unsigned char { kDefault, kIgnored };

struct Ended {
  int status = 0;  // as in a shell: the exit code, or 128 + signal
  std::string out;
  std::string err;
};

class Program final {
 public:
  explicit Program(const std::vector<std::string>& arguments,
                   Standard standard = Standard::kPipes,
                   Hangup hangup = Hangup::kDefault,
                   const std::string& name = "peal");
  /// Kills the remaining processes.
  ~Program();
  Program(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write(std::string_view text) const;
  void close_input() { in_.reset(); }
  void close_output() { out_.reset(); }

  /// Reads stdout until it contains `text` `times` times. Throws if it does not in time.
  void read_until(std::string_view text, int times = 1);
  const std::string& out() const { return out_text_; }

  /// Returns when the program has stopped (SIGSTOP). Throws if it does not in time.
  void wait_until_stopped() const;
  /// Reads all output and waits for the end.
  Ended wait();
  /// Waits for the end without reading; returns the exit status.
  int wait_without_reading();

  /// The processes that have inherited this program's environment, children of any process.
  std::vector<pid_t> processes() const;
  /// Returns when none of these processes remains. Throws if one remains.
  void wait_until_none_is_left() const;

 private:
  void read_some();

  std::string marker_;  // an environment variable that marks this run
  pid_t pid_ = -1;
  Fd in_, out_, err_;
  std::string out_text_, err_text_;
};

/// Runs the program to its end.
Ended run_program(const std::vector<std::string>& arguments);

/// The same under the name `horovodrun`.
Ended run_horovodrun(const std::vector<std::string>& arguments);

/// The arguments of `peal run -n RANKS OPTIONS... sh -c SCRIPT`.
std::vector<std::string> shell(int ranks,
                               const std::string& script,
                               std::vector<std::string> options = {});

std::vector<std::string> sorted_lines(const std::string& text);

}  // namespace peal::cli
