#include "peal/launch/agents/engine.h"

#include <sys/wait.h>

#include <array>

#include <fmt/format.h>

#include "peal/base/printable.h"
#include "peal/base/split.h"
#include "peal/system/process_state.h"

namespace peal::launch::agents {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

/// For a shell of the Bourne family, csh or fish: all of them read single quotes in this way.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? R"('\'')" : std::string(1, c);
  return result + "'";
}

std::string last_line(const std::string& text) {
  std::string last;
  for (std::string_view line : split(text, '\n')) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty()) last = line;
  }
  return printable_line(last);
}

/// A line that ssh writes, and what it means.
struct SshReason {
  std::string_view line;
  std::string_view meaning;
};

constexpr std::array kSshReasons = {
    SshReason{
        "Permission denied",
        "it accepts no key of yours; copy one there with ssh-copy-id, or load it with ssh-add"},
    SshReason{"Host key verification failed",
              "its key is not known here, or has changed; connect once with ssh, and compare"},
    SshReason{"REMOTE HOST IDENTIFICATION HAS CHANGED",
              "its key is not known here, or has changed; connect once with ssh, and compare"},
    SshReason{"Connection refused", "no ssh server listens there; is it running, on this port?"},
    SshReason{"Could not resolve hostname", "the name has no address; check its spelling"},
    SshReason{"No route to host", "the network has no way to it"},
    SshReason{"Connection timed out", "it does not answer"},
};

std::string_view ssh_meaning(const std::string& output) {
  for (const SshReason& reason : kSshReasons) {
    if (output.find(reason.line) != std::string::npos) return reason.meaning;
  }
  return "";
}

std::string in_brackets(const std::string& text) {
  return text.empty() ? "" : fmt::format(" ({})", text);
}

}  // namespace

std::string_view program_of(Engine engine) {
  switch (engine) {
    case Engine::kThisMachine:
      return "the agent";
    case Engine::kSsh:
      return "ssh";
    case Engine::kSlurm:
      return "srun";
  }
  return "";
}

std::vector<std::string> agent_command(const EngineOptions& options, const std::string& host) {
  std::vector<std::string> command;
  switch (options.engine) {
    case Engine::kThisMachine:
      return {options.peal, "agent"};
    case Engine::kSsh:
      command = {"ssh", "-T", "-o", "BatchMode=yes"};
      command.insert(command.end(), options.options.begin(), options.options.end());
      command.insert(command.end(),
                     {"--", host, fmt::format("exec {} agent", quoted(options.peal))});
      return command;
    case Engine::kSlurm:
      command = {"srun",
                 "--nodes=1",
                 "--ntasks=1",
                 "--nodelist=" + host,
                 "--overlap",
                 "--mem=0",
                 "--cpu-bind=none"};
      command.insert(command.end(), options.options.begin(), options.options.end());
      command.insert(command.end(), {options.peal, "agent"});
      return command;
  }
  return command;
}

std::string start_problem(const EngineOptions& options, int status, const std::string& output) {
  const std::string line = last_line(output);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound &&
      output.find("shared libraries") == std::string::npos) {
    return fmt::format(
        "{} does not exist there; install peal, or name its path there with --peal-path",
        options.peal);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotExecutable) {
    return fmt::format("{} is not executable there", options.peal);
  }
  if (options.engine == Engine::kSsh) {
    if (const auto meaning = ssh_meaning(output); !meaning.empty()) {
      return fmt::format("{}{}", meaning, in_brackets(line));
    }
  }
  return fmt::format("{} {}{}",
                     program_of(options.engine),
                     describe_wait_status(status),
                     line.empty() ? "" : ": " + line);
}

}  // namespace peal::launch::agents
