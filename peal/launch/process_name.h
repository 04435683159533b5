// The name and the command line of this process, as `ps` and `pkill` see them. Called by the guard.
#pragma once

#include <string>

namespace peal::launch {

/// Threads: the process has one thread, at construction and at each call.
class ProcessName final {
 public:
  /// Reads the present name and command line.
  ProcessName();

  /// Replaces both by `name`. The command line stays if it is shorter than `name`.
  void replace(const std::string& name) const;
  /// Sets both to what they were at construction.
  void restore() const;

 private:
  std::string name_;
  std::string words_;  // the command line, each word with a null at its end; empty: not known
};

}  // namespace peal::launch
