#include "peal/cli/testing/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/testing/exec_image.h"
#include "peal/base/testing/soon.h"

namespace peal::cli {
namespace {

using std::chrono::milliseconds;

struct Ends {
  Fd mine;
  Fd theirs;
};

enum class Mine : unsigned char { kReader, kWriter };

Ends make_pipe(Mine mine) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  if (mine == Mine::kWriter) return {Fd(ends[1]), Fd(ends[0])};
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends make_terminal() {
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name.data(), name.size()) != 0) {
    throw std::runtime_error("cannot open a terminal");
  }
  Fd slave(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(master.get(), TIOCSWINSZ, &size);
  return {std::move(master), std::move(slave)};
}

/// Reads at most one block. Empty at the end; then closes.
std::string read_block(Fd& fd) {
  std::array<char, 1 << 16> buffer;
  const auto got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got <= 0) fd.reset();  // at its end a terminal gives an error
  return std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
}

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Empty if the file cannot be read, for example of a process that ends meanwhile. (An
/// std::istreambuf_iterator would throw.)
std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Call in the child: a test that was started in the background inherits ignored signals.
void take_default_signals(Hangup hangup) {
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    ::signal(number, SIG_DFL);
  }
  ::signal(SIGHUP, hangup == Hangup::kIgnored ? SIG_IGN : SIG_DFL);
}

}  // namespace

void wait_until(const std::function<bool()>& holds) {
  for (const Deadline deadline = soon(); !holds();) {
    if (deadline.passed()) throw std::runtime_error("the condition did not become true in time");
    std::this_thread::sleep_for(milliseconds(2));
  }
}

Program::Program(const std::vector<std::string>& arguments,
                 Standard standard,
                 Hangup hangup,
                 const std::string& name) {
  static int number = 0;
  const std::string run = fmt::format("{}-{}", ::getpid(), ++number);
  marker_ = "PEAL_TEST_RUN=" + run;
  std::vector<std::string> words = {name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const ExecImage image(PEAL_PROGRAM,
                        std::move(words),
                        {{"PEAL_TEST_RUN", run}, {"TERM", "xterm"}},
                        {"OMP_NUM_THREADS"});
  const bool terminal = standard == Standard::kTerminal;
  Ends out = terminal ? make_terminal() : make_pipe(Mine::kReader);
  Ends err = terminal ? Ends{} : make_pipe(Mine::kReader);
  Ends in = terminal ? Ends{} : make_pipe(Mine::kWriter);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::setsid();
    if (terminal) ::ioctl(out.theirs.get(), TIOCSCTTY, 0);
    ::dup2(terminal ? out.theirs.get() : in.theirs.get(), STDIN_FILENO);
    ::dup2(out.theirs.get(), STDOUT_FILENO);
    ::dup2(terminal ? out.theirs.get() : err.theirs.get(), STDERR_FILENO);
    take_default_signals(hangup);
    image.become(99);
  }
  out_ = std::move(out.mine);
  err_ = std::move(err.mine);
  in_ = terminal ? Fd(::fcntl(out_.get(), F_DUPFD_CLOEXEC, 3)) : std::move(in.mine);
}

Program::~Program() {
  for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void Program::signal(int number) const { ::kill(pid_, number); }

void Program::write(std::string_view text) const {
  if (::write(in_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("cannot write to the program");
  }
}

void Program::read_some() {
  std::array<pollfd, 2> sources = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0}};
  ::poll(sources.data(), sources.size(), 1000);
  if (sources[0].revents != 0) out_text_ += read_block(out_);
  if (sources[1].revents != 0) err_text_ += read_block(err_);
}

void Program::read_until(std::string_view text, int times) {
  const Deadline deadline = soon();
  while (count(out_text_, text) < times) {
    if (!out_ || deadline.passed()) {
      throw std::runtime_error(
          fmt::format("no \"{}\" came; stdout: {}\nstderr: {}", text, out_text_, err_text_));
    }
    read_some();
  }
}

void Program::wait_until_stopped() const {
  int status = 0;
  wait_until(
      [&] { return ::waitpid(pid_, &status, WUNTRACED | WNOHANG) == pid_ && WIFSTOPPED(status); });
}

Ended Program::wait() {
  const Deadline deadline = soon();
  while (out_ || err_) {
    if (deadline.passed()) throw std::runtime_error("the program has not ended: " + out_text_);
    read_some();
  }
  return {wait_without_reading(), out_text_, err_text_};
}

int Program::wait_without_reading() {
  int status = 0;
  wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
  pid_ = -1;
  return shell_status(status);
}

std::vector<pid_t> Program::processes() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || pid == ::getpid()) continue;
    if (read_file(entry->path() / "environ").find(marker_) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

void Program::wait_until_none_is_left() const {
  wait_until([&] { return processes().empty(); });
}

Ended run_program(const std::vector<std::string>& arguments) {
  Program program(arguments);
  program.close_input();
  return program.wait();
}

Ended run_horovodrun(const std::vector<std::string>& arguments) {
  Program program(arguments, Standard::kPipes, Hangup::kDefault, "/opt/bin/horovodrun");
  program.close_input();
  return program.wait();
}

std::vector<std::string> shell(int ranks,
                               const std::string& script,
                               std::vector<std::string> options) {
  std::vector<std::string> arguments = {"run", "-n", fmt::format("{}", ranks)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"sh", "-c", script});
  return arguments;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace peal::cli
