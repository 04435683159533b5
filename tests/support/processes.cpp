#include "tests/support/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "peal/base/error.h"
#include "peal/base/testing/exec_image.h"

namespace peal::testing {
namespace {

constexpr const char* kGate = "PEAL_TEST_GATE";
constexpr auto kLook = std::chrono::milliseconds(5);

template <class Happened>
bool wait_until(Deadline deadline, Happened happened) {
  while (!deadline.passed()) {
    if (happened()) return true;
    std::this_thread::sleep_for(kLook);
  }
  return false;
}

}  // namespace

Processes::~Processes() {
  for (const Process& process : processes_) {
    if (process.pid <= 0) continue;
    ::kill(process.pid, SIGKILL);
    ::waitpid(process.pid, nullptr, 0);
  }
}

void Processes::start(const std::vector<std::string>& command, const Variables& variables) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe", errno);
  Fd reading(ends[0]);
  const Fd writing(ends[1]);
  Variables environment = variables;
  environment.try_emplace("PEAL_TIMEOUT", "3600");
  const ExecImage image(command.front(), command, environment);
  const pid_t pid = ::fork();
  if (pid < 0) throw system_error("fork", errno);
  if (pid == 0) {
    ::dup2(writing.get(), STDOUT_FILENO);
    ::dup2(writing.get(), STDERR_FILENO);
    image.become(127);
  }
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  processes_.push_back({pid, std::move(reading), ""});
}

void Processes::read_what_is_there(Process& process) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = ::read(process.output.get(), buffer.data(), buffer.size());
    if (size <= 0) return;
    process.text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void Processes::read_all() {
  for (Process& process : processes_) read_what_is_there(process);
}

std::vector<Processes::Ended> Processes::wait(Deadline deadline) {
  std::vector<Ended> ended(processes_.size());
  std::size_t left = processes_.size();
  while (left > 0) {
    const bool late = deadline.passed();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Process& process = processes_[i];
      if (process.pid <= 0) continue;
      read_what_is_there(process);
      if (late) ::kill(process.pid, SIGKILL);
      int status = 0;
      if (::waitpid(process.pid, &status, late ? 0 : WNOHANG) != process.pid) continue;
      read_what_is_there(process);
      ended[i] = {!late, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), process.text};
      process.pid = -1;
      --left;
    }
    if (left > 0) std::this_thread::sleep_for(kLook);
  }
  return ended;
}

void Processes::signal(std::size_t which, int signal) const {
  if (processes_[which].pid > 0) ::kill(processes_[which].pid, signal);
}

const std::string& Processes::output(std::size_t which) {
  read_what_is_there(processes_[which]);
  return processes_[which].text;
}

bool Processes::has_ended(const Process& process) {
  siginfo_t info{};
  const int found =
      ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOWAIT | WNOHANG);
  return found != 0 || info.si_pid != 0;
}

bool Processes::wait_for_end(std::size_t which, Deadline deadline) {
  return wait_until(deadline, [&] {
    read_all();
    return has_ended(processes_[which]);
  });
}

bool Processes::wait_for_output(std::size_t which, const std::string& text, Deadline deadline) {
  return wait_until(deadline, [&] {
    read_all();
    return processes_[which].text.find(text) != std::string::npos;
  });
}

bool Processes::wait_for_output_or_end(std::size_t which,
                                       const std::string& text,
                                       Deadline deadline) {
  return wait_until(deadline, [&] {
    const bool ended = has_ended(processes_[which]);
    read_all();
    return ended || processes_[which].text.find(text) != std::string::npos;
  });
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "peal-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw system_error("mkdtemp", errno);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

StartSignal::StartSignal() {
  if (::mkfifo((folder_.path() + "/gate").c_str(), 0600) != 0) throw system_error("mkfifo", errno);
}

Processes::Variables StartSignal::variables() const { return {{kGate, folder_.path() + "/gate"}}; }

void StartSignal::open() {
  opened_ = Fd(::open((folder_.path() + "/gate").c_str(), O_RDWR | O_CLOEXEC));
  if (!opened_) throw system_error("open", errno);
}

void wait_at_gate() {
  const char* const gate = std::getenv(kGate);
  if (gate == nullptr) return;
  constexpr std::string_view kReady = "ready\n";
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, kReady.data(), kReady.size());
  ::alarm(2 * kLimit.count());                          // ends the process if the test has died
  const Fd opened(::open(gate, O_RDONLY | O_CLOEXEC));  // waits until the test opens the other end
  ::alarm(0);
  if (!opened) throw system_error("open", errno);
}

Processes::Variables without_leak_check() {
  const char* const options = std::getenv("ASAN_OPTIONS");
  return {{"ASAN_OPTIONS", std::string(options != nullptr ? options : "") + ":detect_leaks=0"}};
}

}  // namespace peal::testing
