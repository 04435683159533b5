// What `peal container-rank` says to the user about the end of a container, and what the init of a
// container says to `peal container-rank`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal::launch::containers {

/// The command of a container, for texts.
struct ImageCommand {
  std::string image;
  std::string command;  // empty: that of the image
};

/// Why the init of a container could not execute the command, such as "No such file or directory";
/// nothing if it could. The exit code does not show this, because a program may end with the same
/// code. So this function also reads the line that catatonit (podman) or tini (docker) writes.
/// `last_line`: of the container's stderr.
std::optional<std::string> failure_of_init(int exit_code, std::string_view last_line);

/// As in a shell: 127 if a file is missing, else 126.
int code_of_failure(std::string_view reason);

/// What to do if a container with GPUs cannot start; empty if its GPUs are not the reason.
/// `has_driver`: whether this host has NVIDIA's driver. `last_line`: of the engine's stderr.
std::string hint_about_gpus(bool has_driver, std::string_view last_line);

/// Sentences that the container did not start, and what to do.
std::string text_of_failed_command(std::string_view container,
                                   const ImageCommand& command,
                                   std::string_view reason);
/// `exit_code`: of the engine's command. `hint`: one more sentence, or empty.
std::string text_of_failed_engine(std::string_view container,
                                  const ImageCommand& command,
                                  int exit_code,
                                  std::string_view hint);
/// The same, for a command of the engine that was killed.
std::string text_of_interrupted_start(std::string_view container, int exit_code);

/// Why peal says that a rank ran out of memory.
enum class Evidence : unsigned char {
  kEngine,  // the engine says so
  kLimit,   // the container has a limit, and nothing else explains the SIGKILL
};
/// `limit`: of the container; 0: none.
std::string text_of_memory(Evidence evidence, Bytes limit);

}  // namespace peal::launch::containers
