#include "peal/launch/agents/engine.h"

#include <sys/wait.h>

#include <algorithm>
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
    const bool is_ruler = line.find_first_not_of('-') == std::string_view::npos;  // of Open MPI
    if (!is_ruler) last = line;
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

constexpr std::array kMpiReasons = {
    SshReason{"attempt to run as root",
              "Open MPI refuses to run as root; set OMPI_ALLOW_RUN_AS_ROOT=1 and "
              "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
    SshReason{"orted: ", "the same Open MPI must be installed there, in the same folder"},
    SshReason{"hydra_pmi_proxy: ", "the same MPICH must be installed there, in the same folder"},
    SshReason{"execute an executable", "peal does not exist there; see --peal-path"},
    SshReason{"execvp error", "peal does not exist there; see --peal-path"},
    SshReason{"reading stdin too slowly", "MPICH has sent more than the agent could read"},
};

std::string_view mpi_meaning(const std::string& output) {
  const auto found = std::ranges::find_if(kMpiReasons, [&](const SshReason& reason) {
    return output.find(reason.line) != std::string::npos;
  });
  return found == kMpiReasons.end() ? "" : found->meaning;
}

/// The meaning, and the line of ssh; empty if the output has no known reason.
std::string ssh_problem(const std::string& output) {
  for (const SshReason& reason : kSshReasons) {
    const auto found = output.find(reason.line);
    if (found == std::string::npos) continue;
    const std::string line = last_line(output.substr(0, output.find('\n', found)));
    return fmt::format("{} ({})", reason.meaning, line);
  }
  return "";
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
    case Engine::kMpi:
      return "mpirun";
  }
  return "";
}

AddressSource addresses_of(Engine engine) {
  switch (engine) {
    case Engine::kThisMachine:
      break;
    case Engine::kSsh:
      return AddressSource::kSsh;
    case Engine::kSlurm:
      return AddressSource::kSlurm;
    case Engine::kMpi:
      break;  // the launcher finds out: see AgentHost
  }
  return AddressSource::kNone;
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
                 "--cpu-bind=none",
                 "--unbuffered"};  // slurmstepd would keep bytes until the next newline
      if (const auto found = options.components.find(host); found != options.components.end()) {
        command.push_back(fmt::format("--het-group={}", found->second));
      }
      break;
    case Engine::kMpi:
      // These options mean the same to Open MPI and to MPICH. Without the last one, Open MPI binds
      // the agent, and so all ranks of the host, to one core.
      command = {"mpirun", "--host", host, "-n", "1", "--bind-to", "none"};
      break;
  }
  command.insert(command.end(), options.options.begin(), options.options.end());
  command.insert(command.end(), {options.peal, "agent"});
  return command;
}

std::string mpirun_problem(std::string_view version) {
  constexpr std::string_view kLossy = "(Open MPI) 5.0.";
  if (version.find(kLossy) == std::string_view::npos) return "";
  return "agents get their orders by standard input, and mpirun of Open MPI 5.0 loses parts of the "
         "standard input of programs on other hosts; use Open MPI 4.1 or MPICH, or reach the hosts "
         "by ssh (--launcher ssh, peal submit --to ssh)";
}

std::string last_words(const std::string& output) {
  const std::string line = last_line(output);
  return line.empty() ? "" : ": " + line;
}

std::string problem_before_the_end(Engine engine, const std::string& output) {
  if (engine != Engine::kMpi) return "";
  // Only ssh itself writes these. A login file that lacks a permission stops no agent.
  for (const std::string_view line : split(output, '\n')) {
    const bool is_final = line.find("Permission denied (") != std::string_view::npos ||
                          line.starts_with("Host key verification failed") ||
                          line.starts_with("ssh: ");
    if (!is_final) continue;
    const std::string text(line);
    const std::string problem = ssh_problem(text);
    return problem.empty() ? last_line(text) : problem;
  }
  return "";
}

std::string start_problem(const EngineOptions& options, int status, const std::string& output) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound &&
      output.find("shared libraries") == std::string::npos) {
    return fmt::format(
        "{} does not exist there; install peal, or name its path there with --peal-path",
        options.peal);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotExecutable) {
    return fmt::format("{} is not executable there", options.peal);
  }
  if (options.engine == Engine::kMpi && !mpi_meaning(output).empty()) {
    return std::string(mpi_meaning(output));
  }
  if (options.engine == Engine::kSsh || options.engine == Engine::kMpi) {
    if (std::string problem = ssh_problem(output); !problem.empty()) return problem;
  }
  return fmt::format(
      "{} {}{}", program_of(options.engine), describe_wait_status(status), last_words(output));
}

}  // namespace peal::launch::agents
