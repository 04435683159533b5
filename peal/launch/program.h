// Runs the program of an engine, such as kubectl or sbatch: for an answer, or for a stream of
// lines. Called by runners.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/system/fd.h"

namespace peal::launch {

struct Answer {
  std::optional<int> exit_code{};  // 128+n for signal n; nothing: killed at the deadline
  std::string out{};
  std::string err{};
};

struct Question {
  std::vector<std::string> words;
  /// For the stdin of the program; no file on disk and no command line contains it.
  std::string_view input = {};
  Timeout patience{30'000};
  /// "NAME=value". Nothing: the environment of this process.
  std::optional<std::vector<std::string>> environment = {};
  std::string_view if_missing = "install it, or add its folder to PATH";  // what to do
};

/// Runs the program to its end. If this process handles Ctrl-C, the program does not get the
/// signal: the program has a session of its own, without a terminal. Errors: resource (the program
/// is missing). Throws Interrupted, after it has killed the program.
Answer ask_program(const Question& question, const Interrupt& interrupt = {});

/// A program that runs, with its output in a pipe. The destructor kills it.
class ProgramStream final {
 public:
  /// Errors: resource.
  explicit ProgramStream(const std::vector<std::string>& words);
  ~ProgramStream();
  ProgramStream(ProgramStream&& other) noexcept;
  ProgramStream& operator=(ProgramStream&&) = delete;
  ProgramStream(const ProgramStream&) = delete;
  ProgramStream& operator=(const ProgramStream&) = delete;

  /// To be polled; -1 after the end.
  int fd() const { return out_.get(); }
  /// Reads what is there, or waits for it. Empty: the end.
  std::string read_some();
  /// To be called once, after the end: the exit code.
  int wait();

 private:
  pid_t pid_ = -1;
  Fd out_{};
};

}  // namespace peal::launch
