#include "peal/launch/containers/engine_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/command.h"
#include "peal/launch/start_process.h"
#include "peal/system/fd.h"
#include "peal/system/text_file.h"

namespace peal::launch::containers {
namespace {

std::string value_or(const Variables& variables, const char* name, const std::string& other) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.empty() ? other : found->second;
}

/// A file without a name, for the output of a command: the caller need not read while it runs.
Fd output_file() {
  Fd file(::memfd_create("peal-engine-output", MFD_CLOEXEC));
  if (!file) throw system_error("cannot make a file for the output of a command", errno);
  return file;
}

std::string content_of(const Fd& file) {
  ::lseek(file.get(), 0, SEEK_SET);
  return read_text(file);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Throws Interrupted, after it has killed the process and its children, which are its group.
int wait_for(pid_t pid, const Interrupt& interrupt) {
  if (!interrupt) return exit_code_of(pid);
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return exit_code_of(pid);
  try {
    wait_or_interrupt(Deadline(TimePoint::max()), interrupt, [&](Deadline slice) {
      pollfd entry{process.get(), POLLIN, 0};
      return ::poll(&entry, 1, static_cast<int>(slice.left().count())) > 0;
    });
  } catch (const Interrupted&) {
    ::kill(-pid, SIGKILL);
    exit_code_of(pid);
    throw;
  }
  return exit_code_of(pid);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return printable_line(text.substr(text.rfind('\n') + 1));
}

CommandLookup look_up_engine(const std::string& name, const std::string& path) {
  if (!name.empty()) return find_command(name, path);
  for (const char* known : {"podman", "docker"}) {
    if (CommandLookup found = find_command(known, path); found.exit_code == 0) return found;
  }
  return {.exit_code = 127,
          .problem = "no engine for containers was found in PATH: install podman or docker"};
}

bool has_image(const FoundEngine& found,
               const std::string& image,
               const Variables& environment,
               const Interrupt& interrupt) {
  return run_engine(found.engine,
                    {"image", "inspect", "--format={{.Id}}", "--", image},
                    environment,
                    interrupt)
             .exit_code == 0;
}

/// Why the engine does not work on this host, such as docker without its daemon; empty: it works.
std::string problem_of(const std::string& engine,
                       const Variables& environment,
                       const Interrupt& interrupt) {
  const EngineAnswer answer = run_engine(engine, {"ps", "--quiet"}, environment, interrupt);
  if (answer.exit_code == 0) return {};
  const std::string message = last_line(answer.errors);
  if (kind_of(engine) == EngineKind::kPodman) {
    return fmt::format("{} does not work on this host: {}", engine, message);
  }
  return fmt::format(
      "the daemon of {} does not answer: {} Start the daemon, or choose another "
      "engine by {}",
      engine,
      message,
      kEngineVariable);
}

/// Adds to found.problem or found.notice.
void pull(const std::string& image,
          const Variables& environment,
          const Interrupt& interrupt,
          FoundEngine& found) {
  const EngineAnswer pulled =
      run_engine(found.engine, {"pull", "--", image}, environment, interrupt);
  if (pulled.exit_code == 0) {
    found.notice += fmt::format("the image {} was missing, and was pulled; ", image);
    return;
  }
  if (!found.problem.empty()) found.problem += "; ";
  found.problem += fmt::format("the image {} is not here, and {} cannot pull it: {}",
                               quoted_beginning(image),
                               found.engine,
                               last_line(pulled.errors));
}

}  // namespace

EngineKind kind_of(std::string_view engine) {
  const std::string name = std::filesystem::path(engine).filename().string();
  return name.starts_with("docker") ? EngineKind::kDocker : EngineKind::kPodman;
}

EngineAnswer run_engine(const std::string& engine,
                        std::vector<std::string> arguments,
                        const Variables& environment,
                        const Interrupt& interrupt) {
  arguments.insert(arguments.begin(), engine);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd out = output_file();
  const Fd errors = output_file();
  const StartedProcess started =
      start_process({.program = engine,
                     .arguments = std::move(arguments),
                     .environment = environment,
                     .cpus = {}},
                    {.in = null.get(), .out = out.get(), .err = errors.get()});
  if (started.error != 0) throw system_error("cannot start " + engine, started.error);
  const int code = wait_for(started.pid, interrupt);
  return {.exit_code = code, .out = content_of(out), .errors = content_of(errors)};
}

FoundEngine find_engine(const std::string& name,
                        const std::vector<std::string>& images,
                        const Variables& environment,
                        const Interrupt& interrupt) {
  const CommandLookup engine =
      look_up_engine(name, value_or(environment, "PATH", "/usr/local/bin:/usr/bin:/bin"));
  FoundEngine found{.engine = engine.path, .problem = engine.problem};
  if (!found.problem.empty()) return found;
  std::vector<std::string> missing;
  std::ranges::copy_if(images, std::back_inserter(missing), [&](const std::string& image) {
    return !has_image(found, image, environment, interrupt);
  });
  if (!missing.empty()) found.problem = problem_of(found.engine, environment, interrupt);
  if (found.problem.empty()) {
    for (const std::string& image : missing) pull(image, environment, interrupt, found);
  }
  if (found.notice.ends_with("; ")) found.notice.resize(found.notice.size() - 2);
  if (!found.problem.empty()) found.engine.clear();
  return found;
}

}  // namespace peal::launch::containers
