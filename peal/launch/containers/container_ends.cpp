#include "peal/launch/containers/container_ends.h"

#include <fmt/format.h>

namespace peal::launch::containers {
namespace {

constexpr std::string_view kMissing = "No such file or directory";
constexpr int kInitFailed = 1;       // catatonit, and tini for rare reasons
constexpr int kCannotExecute = 126;  // as a shell, tini and engines
constexpr int kNotFound = 127;

std::optional<std::string> after(std::string_view line, std::string_view words) {
  const auto place = line.rfind(words);
  if (place == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(place + words.size()));
}

std::string no_start(std::string_view container) {
  return fmt::format("the container {} did not start: ", container);
}

}  // namespace

std::optional<std::string> failure_of_init(int exit_code, std::string_view last_line) {
  while (last_line.ends_with('\r')) last_line.remove_suffix(1);
  // ERROR (catatonit:6): failed to exec pid1: No such file or directory
  if (exit_code == kInitFailed && last_line.starts_with("ERROR (catatonit:")) {
    return after(last_line, "): failed to exec pid1: ");
  }
  // [FATAL tini (7)] exec train failed: No such file or directory
  const bool may_be_of_tini =
      exit_code == kInitFailed || exit_code == kCannotExecute || exit_code == kNotFound;
  if (may_be_of_tini && last_line.starts_with("[FATAL tini (")) {
    return after(last_line, " failed: ");
  }
  return std::nullopt;
}

int code_of_failure(std::string_view reason) {
  return reason == kMissing ? kNotFound : kCannotExecute;
}

std::string text_of_failed_command(std::string_view container,
                                   const ImageCommand& command,
                                   std::string_view reason) {
  const std::string what = command.command.empty() ? std::string("its own command")
                                                   : fmt::format("the command {}", command.command);
  const std::string start = no_start(container);
  if (reason != kMissing) {
    return fmt::format(
        "{}the image {} cannot execute {}: {}. The file must be a program, and its "
        "mode must allow its execution",
        start,
        command.image,
        what,
        reason);
  }
  return fmt::format(
      "{}the image {} lacks {}, or an interpreter or a library for it. Put it into "
      "the image, or mount its folder (the option --volume=FOLDER:FOLDER of the "
      "container)",
      start,
      command.image,
      what);
}

std::string text_of_failed_engine(std::string_view container,
                                  const ImageCommand& command,
                                  int exit_code,
                                  std::string_view hint) {
  // Without an init, the engine's runtime looks for the command.
  if (exit_code == kNotFound) return text_of_failed_command(container, command, kMissing);
  return fmt::format("{}the engine's exit code is {}, and its message is above{}{}",
                     no_start(container),
                     exit_code,
                     hint.empty() ? "" : ". ",
                     hint);
}

std::string hint_about_gpus(bool has_driver, std::string_view last_line) {
  if (!has_driver) return "The job asks for GPUs, and this host has no GPU with NVIDIA's driver";
  // podman names its device nvidia.com/gpu, and docker the capability gpu.
  if (last_line.find("gpu") == std::string_view::npos) return {};
  return "The engine does not find the GPUs of this host: install NVIDIA's Container Toolkit, and "
         "run nvidia-ctk cdi generate (for podman) or nvidia-ctk runtime configure (for docker)";
}

std::string text_of_interrupted_start(std::string_view container, int exit_code) {
  return fmt::format(
      "the container {} did not start, because the engine's command ended with exit code {}",
      container,
      exit_code);
}

std::string text_of_memory(Evidence evidence, Bytes limit) {
  const std::string_view reason = evidence == Evidence::kEngine
                                      ? ": the kernel killed a process of this rank"
                                      : " (probably): this rank was killed by SIGKILL";
  if (limit.value == 0) return fmt::format("out of memory{}", reason);
  return fmt::format(
      "out of memory{}; raise the limit of memory of its container, {} bytes", reason, limit.value);
}

}  // namespace peal::launch::containers
