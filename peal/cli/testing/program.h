// A run of the program `peal` under test: started, spoken to, signalled and waited for, each within
// a bounded time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/fd.h"

namespace peal::cli {

/// Returns when `holds` does. Throws when it still does not after far more time than any test
/// needs.
void wait_until(const std::function<bool()>& holds);

/// What the program has for stdin, stdout and stderr.
enum class Standard : unsigned char {
  kPipes,
  kTerminal,  // one terminal for all three, the controlling one of a session of its own
};

/// What the program does with SIGHUP when it starts.
enum class Hangup : unsigned char { kDefault, kIgnored };

struct Ended {
  int status = 0;  // as a shell gives it: the exit code, or 128 + signal
  std::string out;
  std::string err;
};

class Program final {
 public:
  explicit Program(const std::vector<std::string>& arguments,
                   Standard standard = Standard::kPipes,
                   Hangup hangup = Hangup::kDefault);
  /// Kills what is left.
  ~Program();
  Program(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write(std::string_view text) const;
  void close_input() { in_.reset(); }
  void close_output() { out_.reset(); }

  /// Reads stdout until `text` has come `times` times. Throws when it does not come.
  void read_until(std::string_view text, int times = 1);
  const std::string& out() const { return out_text_; }

  /// Returns when it has stopped (SIGSTOP). Throws when it does not.
  void wait_until_stopped() const;
  /// Reads everything and waits for the end.
  Ended wait();
  /// Its exit status, with nothing read.
  int wait_without_reading();

  /// The processes, whosever children, that have inherited this program's environment.
  std::vector<pid_t> processes() const;
  /// Returns when there are none any more. Throws when some stay.
  void wait_until_none_is_left() const;

 private:
  void read_some();

  std::string marker_;  // an environment variable of its own
  pid_t pid_ = -1;
  Fd in_, out_, err_;
  std::string out_text_, err_text_;
};

/// Runs it to its end.
Ended run_program(const std::vector<std::string>& arguments);

}  // namespace peal::cli
