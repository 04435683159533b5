// What `peal container-rank` says about the end of a container. The launcher reads it in the output
// of the rank, because an exit code does not tell an engine from a program. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace peal::launch::containers {

/// The command of a container, for texts.
struct ImageCommand {
  std::string image;
  std::string command;  // empty: that of the image
};

/// Why the init of a container could not execute the command, such as "No such file or directory";
/// nothing if it could. An init only ends with an exit code that a program may have, too, and
/// writes a line of its own: this knows the lines of catatonit (podman) and tini (docker).
/// `last_line`: of the container's stderr.
std::optional<std::string> failure_of_init(int exit_code, std::string_view last_line);

/// As in a shell: 127 if a file is missing, else 126.
int code_of_failure(std::string_view reason);

/// Sentences that the container did not start, and what to do.
std::string text_of_failed_command(std::string_view container,
                                   const ImageCommand& command,
                                   std::string_view reason);
std::string text_of_failed_engine(std::string_view container,
                                  const ImageCommand& command,
                                  int exit_code);

/// Whether these lines of a rank contain one of these sentences, after "peal: ".
bool tell_of_no_start(std::span<const std::string> lines);

}  // namespace peal::launch::containers
