#include "peal/launch/containers/container_rank.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/launch/containers/container_command.h"
#include "peal/launch/containers/container_ends.h"
#include "peal/launch/containers/engine_client.h"
#include "peal/launch/containers/stderr_relay.h"
#include "peal/launch/guard_messages.h"
#include "peal/launch/start_process.h"
#include "peal/system/fd.h"
#include "peal/system/private_folder.h"
#include "peal/system/text_file.h"

namespace peal::launch::containers {
namespace {

constexpr Timeout kToRemove{30'000};
constexpr int kPause = 100;        // milliseconds between attempts to remove a container
constexpr int kNoContainer = 125;  // as podman and docker: the engine has failed
constexpr const char* kDriver = "/dev/nvidiactl";
constexpr int kSignalCode = 128;  // + n: signal n has ended the rank

struct Run {
  std::string engine;
  std::string name;
  std::string image;
  std::vector<std::string> arguments;  // of the engine
};

std::string folder_prefix() { return fmt::format("peal-container-{}.", ::geteuid()); }

/// Takes the variable out of the environment, which is then that of the engine.
std::optional<std::string> take(Variables& environment, const char* name) {
  const auto found = environment.extract(name);
  if (found.empty()) return std::nullopt;
  return found.mapped();
}

std::optional<std::string> take_secret(Variables& environment) {
  auto secret = take(environment, "PEAL_SECRET");
  const auto file = take(environment, "PEAL_SECRET_FILE");
  if (secret || !file) return secret;
  try {
    return read_text_file(*file);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("PEAL_SECRET_FILE {}: {}", *file, error.message()));
  }
}

/// The pipe for the EndDetail. The engine and the program of the rank do not inherit it.
Fd take_end_pipe(Variables& environment) {
  const auto number = take(environment, kEndPipeVariable);
  if (!number) return Fd();
  Fd pipe(std::atoi(number->c_str()));
  ::fcntl(pipe.get(), F_SETFD, FD_CLOEXEC);
  return pipe;
}

/// A terminal is not passed on: the engine runs in a process group of its own.
bool has_input() {
  struct stat status {};
  return ::fstat(STDIN_FILENO, &status) == 0 && !S_ISCHR(status.st_mode);
}

bool has_option(const std::vector<std::string>& arguments, std::string_view option) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with(option)) return true;
  }
  return false;
}

/// Half of the memory of this machine, as the kernel gives /dev/shm outside of containers.
std::string half_of_memory() {
  return fmt::format("--shm-size={}b", ::sysconf(_SC_PHYS_PAGES) / 2 * ::sysconf(_SC_PAGESIZE));
}

/// The options that need this host: files, the memory of the machine, the standard input.
std::vector<std::string> options_of_host(const PrivateFolder& folder,
                                         const std::vector<std::string>& arguments,
                                         Variables& environment) {
  std::vector<std::string> options;
  if (const auto lines = take(environment, kFileVariable)) {
    options.push_back("--env-file=" + folder.write("variables", *lines));
  }
  if (const auto secret = take_secret(environment)) {
    const std::string path = folder.write("secret", *secret);
    // The user of the image may read it. Other users of this host cannot enter the folder.
    ::chmod(path.c_str(), 0444);
    options.push_back(fmt::format("--volume={}:{}:ro,z", path, kSecretPath));
  }
  if (const auto flag = take(environment, kStopFlagVariable)) {
    // The user of the image must be able to open the file, as the file of the secret.
    ::chmod(flag->c_str(), 0666);
    options.push_back(fmt::format("--volume={}:{}:z", *flag, kStopFlagPath));
    options.push_back(fmt::format("--env={}={}", kStopFlagVariable, kStopFlagPath));
  }
  if (!has_option(arguments, "--shm-size=")) options.push_back(half_of_memory());
  if (has_input()) options.emplace_back("--interactive");
  return options;
}

/// Resumes a stopped program. The engine's command would do this too, but a container that is about
/// to end makes the engine write an error.
void resume(const Run& run, const Variables& environment) {
  run_engine(run.engine, {"kill", "--signal=CONT", run.name}, environment);
}

/// Waits for the engine's command, and passes on signals to it. Its exit code; nothing if the
/// guard was killed. `request`: the first signal that asks the rank to end; 0: none.
std::optional<int> await(const Run& run,
                         const Variables& environment,
                         pid_t engine,
                         pid_t guard,
                         const sigset_t& signals,
                         int& request) {
  while (true) {
    siginfo_t news{};
    if (::sigwaitinfo(&signals, &news) < 0) continue;
    int status = 0;
    if (::waitpid(engine, &status, WNOHANG) == engine) {
      return WIFSIGNALED(status) ? kSignalCode + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (::getppid() != guard) return std::nullopt;
    const int signal = news.si_signo;
    if (signal == SIGCHLD || signal == SIGPIPE || signal == SIGURG) continue;
    if (request == 0 && (signal == SIGTERM || signal == SIGINT)) request = signal;
    if (request != 0 && signal == SIGCONT) {
      resume(run, environment);
    } else {
      ::kill(engine, signal);
    }
  }
}

struct State {
  bool has_started = false;
  bool is_running = false;  // the engine's command was killed
  int exit_code = 0;
  bool is_out_of_memory = false;
  Bytes memory_limit;  // 0: none
};

/// Nothing if the container does not exist.
std::optional<State> inspect(const std::string& engine,
                             const std::string& name,
                             const Variables& environment) {
  const EngineAnswer answer = run_engine(engine,
                                         {"inspect",
                                          "--type=container",
                                          "--format={{.State.ExitCode}} {{.State.OOMKilled}} "
                                          "{{.State.Running}} {{.HostConfig.Memory}} "
                                          "{{.State.StartedAt}}",
                                          name},
                                         environment);
  if (answer.exit_code != 0) return std::nullopt;
  std::istringstream words(answer.out);
  State state;
  std::string out_of_memory;
  std::string running;
  std::string start;
  words >> state.exit_code >> out_of_memory >> running >> state.memory_limit.value >> start;
  state.is_running = running == "true";
  state.has_started = !start.empty() && !start.starts_with("0001-");  // Go's time zero
  state.is_out_of_memory = out_of_memory == "true";
  return state;
}

void say(const std::string& sentence) {
  fmt::print(stderr, "peal: {}\n", sentence);
  std::fflush(stderr);
}

bool is_killed(const State& state) { return state.exit_code == kSignalCode + SIGKILL; }

/// Nothing if memory did not run out, as far as is known.
std::optional<Evidence> evidence_of_memory(const State& state, int request) {
  if (state.is_out_of_memory) return Evidence::kEngine;
  const bool is_likely = state.memory_limit.value > 0 && request == 0 && is_killed(state);
  return is_likely ? std::optional(Evidence::kLimit) : std::nullopt;
}

EndDetail detail_of_memory(const State& state) {
  return {.out_of_memory = is_killed(state) ? 1 : 0, .memory_limit = state.memory_limit.value};
}

/// The command that replaces the entrypoint is an option beside the image.
ImageCommand command_of(const std::vector<std::string>& arguments, const std::string& image) {
  constexpr std::string_view kOption = "--entrypoint=";
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i - 1];
    if (arguments[i] == image && option.starts_with(kOption)) {
      return {image, std::string(option.substr(kOption.size()))};
    }
  }
  return {image, ""};
}

/// How the engine's command ended.
struct End {
  int code = 0;
  int request = 0;             // the signal that asked the rank to end; 0: none
  std::optional<State> state;  // of the container
  std::string last_line;       // of stderr
};

std::string hint_about(const Run& run, const std::string& last_line) {
  const bool asks_for_gpus =
      has_option(run.arguments, "--gpus=") || has_option(run.arguments, "--device=nvidia.com/gpu=");
  return asks_for_gpus ? hint_about_gpus(::access(kDriver, F_OK) == 0, last_line) : "";
}

/// How the rank ended.
struct Verdict {
  int code = 0;  // the exit code, or kSignalCode + n
  EndDetail detail{};
};

/// The result of a program that has run.
Verdict judge_program(const State& state, int request) {
  const auto evidence = evidence_of_memory(state, request);
  if (!evidence) return {.code = state.exit_code};
  say(text_of_memory(*evidence, state.memory_limit));
  return {state.exit_code, detail_of_memory(state)};
}

/// The result of the rank, told apart from a failure of the engine or of the container's init.
Verdict judge(const Run& run, const End& end) {
  const ImageCommand command = command_of(run.arguments, run.image);
  if (end.state && end.state->is_running) return {.code = end.code};
  if (end.state && end.state->has_started) {
    const auto reason = failure_of_init(end.state->exit_code, end.last_line);
    if (!reason) return judge_program(*end.state, end.request);
    say(text_of_failed_command(run.name, command, *reason));
    return {code_of_failure(*reason), {.container_start = ContainerStart::kFailed}};
  }
  if (end.request != 0) return {.code = kSignalCode + end.request};
  if (end.code == 0 || end.code > kSignalCode) {
    say(text_of_interrupted_start(run.name, end.code));
    return {kNoContainer, {.container_start = ContainerStart::kInterrupted}};
  }
  say(text_of_failed_engine(run.name, command, end.code, hint_about(run, end.last_line)));
  return {end.code, {.container_start = ContainerStart::kFailed}};
}

/// So that the report names the signal. Returns if the signal does not end a process.
void end_by_signal(int code) {
  const int signal = code - kSignalCode;
  if (signal < 1 || signal >= SIGRTMIN) return;
  ::prctl(PR_SET_DUMPABLE, 0);  // the core dump would be of this process
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::kill(::getpid(), signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

/// Tries again: if the processes of a container were killed, podman's first attempt only finds out
/// that they have ended.
void remove(const std::string& engine, const std::string& name, const Variables& environment) {
  std::vector<std::string> arguments = {"rm", "--force", "--volumes"};
  if (kind_of(engine) == EngineKind::kPodman) arguments.emplace_back("--time=0");
  arguments.push_back(name);
  const Deadline deadline = Deadline::after(kToRemove);
  while (run_engine(engine, arguments, environment).exit_code != 0 && !deadline.passed()) {
    if (!inspect(engine, name, environment)) return;
    ::poll(nullptr, 0, kPause);
  }
}

/// Returns the exit code of the rank.
int run(Run run, pid_t guard) {
  const PrivateFolder folder(folder_prefix());
  Variables environment = process_variables();
  const Fd end_pipe = take_end_pipe(environment);
  auto& arguments = run.arguments;
  const auto options = options_of_host(folder, arguments, environment);
  arguments.insert(arguments.begin() + 1, options.begin(), options.end());
  arguments.insert(arguments.begin(), run.engine);
  sigset_t signals;
  sigset_t none;
  sigfillset(&signals);
  sigemptyset(&none);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  StderrRelay errors;
  const StartedProcess started = start_process(
      {.program = run.engine, .arguments = arguments, .environment = environment, .cpus = {}},
      {.in = STDIN_FILENO, .out = STDOUT_FILENO, .err = errors.writer(), .mask = none});
  if (started.error != 0) throw system_error("cannot start " + run.engine, started.error);
  errors.start();
  int request = 0;
  const auto code = await(run, environment, started.pid, guard, signals, request);
  if (!code) {
    ::kill(started.pid, SIGKILL);  // the command may be about to make the container
    ::waitpid(started.pid, nullptr, 0);
    remove(run.engine, run.name, environment);
    return kSignalCode + SIGKILL;
  }
  errors.finish();
  const auto state = inspect(run.engine, run.name, environment);
  const Verdict verdict = judge(run, {*code, request, state, errors.last_line()});
  if (verdict.detail != EndDetail{}) {
    [[maybe_unused]] const auto written =
        ::write(end_pipe.get(), &verdict.detail, sizeof verdict.detail);
  }
  return verdict.code;
}

}  // namespace

int run_container_rank(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    throw Error(ErrorKind::kUsage, "peal container-rank is started by peal run --image");
  }
  const pid_t guard = ::getppid();
  // If the guard is killed, this process must live long enough to remove the container.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int code = run(
      {arguments[0], arguments[1], arguments[2], {arguments.begin() + 3, arguments.end()}}, guard);
  end_by_signal(code);
  return code;
}

int end_container(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) {
    throw Error(ErrorKind::kUsage, "peal container-end is started by the guard of a rank");
  }
  char ignored = 0;
  ssize_t got = 1;
  while (got > 0 || (got < 0 && errno == EINTR)) got = ::read(STDIN_FILENO, &ignored, 1);
  remove(arguments[0], arguments[1], process_variables());
  remove_folders_of_ended_processes(folder_prefix(), folder_of_the_system());
  return 0;
}

}  // namespace peal::launch::containers
