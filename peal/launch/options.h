// What a launch on this machine is asked to do: a value, made by the program `peal run`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "peal/base/clock.h"

namespace peal::launch {

/// What stands before each line that a rank writes.
enum class Labels : unsigned char {
  kRank,  // "[0] "
  kNone,
};

/// What a rank may run on.
enum class Binding : unsigned char {
  kCores,  // its share of the cores that the launcher may use
  kNone,   // wherever the kernel puts it; OMP_NUM_THREADS is its share all the same
};

/// An environment variable for every rank.
struct Assignment {
  std::string name;
  std::string value;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct LaunchOptions {
  std::vector<std::string> command;  // the program and its arguments; looked up in PATH
  int ranks = 1;
  Labels labels = Labels::kRank;
  Binding binding = Binding::kCores;
  std::vector<Assignment> variables;  // these win over what is inherited and over defaults
  std::string log_directory;          // empty: none; else rank-N.out and rank-N.err besides
  /// What a process has between being told to end and being killed.
  Timeout grace = std::chrono::seconds(5);

  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

/// Throws Error(usage) that says what to do: no command, no ranks, a negative grace, a variable by
/// which the launcher tells a rank who it is and where it finds the others.
void check(const LaunchOptions& options);

}  // namespace peal::launch
