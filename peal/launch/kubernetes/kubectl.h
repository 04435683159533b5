// Runs the real kubectl: for an answer, or for a stream of lines. Called by the runner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/launch/program.h"

namespace peal::launch::kubernetes {

class Kubectl final {
 public:
  /// `command`: the program, and the options before each of its commands, such as --context=X.
  /// `patience`: for each answer.
  explicit Kubectl(std::vector<std::string> command, Timeout patience);

  /// Runs `kubectl words...`. kubectl reads `input` from its stdin; no file on disk and no command
  /// line contains it.
  /// Errors: resource (kubectl is missing; it does not answer in time). Throws Interrupted.
  Answer run(const std::vector<std::string>& words,
             std::string_view input = {},
             const Interrupt& interrupt = {}) const;

  /// The same, for calls that must succeed. Returns the output. Errors: resource; the text has the
  /// reason of kubectl, and what to do. `during`: "start the job".
  std::string must(std::string_view during,
                   const std::vector<std::string>& words,
                   std::string_view input = {},
                   const Interrupt& interrupt = {}) const;

  ProgramStream stream(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> with_command(const std::vector<std::string>& words) const;

  const std::vector<std::string> command_;
  const Timeout patience_;
};

/// The error of kubectl in `err` as one sentence that tells the user what to do. Pure.
std::string explain(std::string_view during, std::string_view err);

/// Whether kubectl failed because an object of this name exists already.
bool says_already_exists(const Answer& answer);
/// Whether the cluster does not know this kind of object.
bool says_unknown_kind(const Answer& answer);

}  // namespace peal::launch::kubernetes
