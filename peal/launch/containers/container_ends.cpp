#include "peal/launch/containers/container_ends.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace peal::launch::containers {
namespace {

constexpr std::string_view kSubject = "the container ";
constexpr std::string_view kNoStart = " did not start: ";
constexpr std::string_view kInterrupted = " did not start, because ";
constexpr std::string_view kMemory = "out of memory";
constexpr std::string_view kLimit = "; raise the limit of memory of its container, ";
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
  return fmt::format("{}{}{}", kSubject, container, kNoStart);
}

/// Only SIGKILL ends a rank whose memory runs out.
void take_memory(std::string_view line, ProcessEnd& end) {
  if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGKILL) return;
  end.out_of_memory.emplace();
  const auto place = line.find(kLimit);
  if (place == std::string_view::npos) return;
  const std::string_view number = line.substr(place + kLimit.size());
  std::int64_t bytes = 0;
  std::from_chars(number.data(), number.data() + number.size(), bytes);
  if (bytes > 0) end.out_of_memory->limit = Bytes(bytes);
}

void take_sentence(std::string_view line, ProcessEnd& end) {
  constexpr std::string_view kSpeaker = "peal: ";
  if (!line.starts_with(kSpeaker)) return;
  line.remove_prefix(kSpeaker.size());
  if (line.starts_with(kMemory)) take_memory(line, end);
  if (!line.starts_with(kSubject)) return;
  const std::string_view verb = line.substr(std::min(line.find(' ', kSubject.size()), line.size()));
  if (verb.starts_with(kNoStart)) end.container_start = ContainerStart::kFailed;
  if (verb.starts_with(kInterrupted)) end.container_start = ContainerStart::kInterrupted;
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
        "mode must permit to execute it",
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
  return fmt::format("{}{}{}the engine's command was ended with exit code {}",
                     kSubject,
                     container,
                     kInterrupted,
                     exit_code);
}

std::string text_of_memory(Evidence evidence, Bytes limit) {
  const std::string_view reason = evidence == Evidence::kEngine
                                      ? ": the kernel killed a process of this rank"
                                      : " (probably): this rank was killed by SIGKILL";
  if (limit.value == 0) return fmt::format("{}{}", kMemory, reason);
  return fmt::format("{}{}{}{} bytes", kMemory, reason, kLimit, limit.value);
}

void take_sentences(std::span<ProcessEnd> ends) {
  for (ProcessEnd& end : ends) {
    for (const std::string& line : end.last_lines) take_sentence(line, end);
  }
}

}  // namespace peal::launch::containers
