#include "peal/launch/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// The descriptors that a started program gets.
class FileActions final {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd, as); }
  void give_nothing(int as) {
    ::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// The session of a process to start: a new one, or that of this process with its terminal.
class SpawnSession final {
 public:
  enum class Of : unsigned char { kThisProcess, kItsOwn };

  explicit SpawnSession(Of session) {
    ::posix_spawnattr_init(&attributes_);
    if (session == Of::kItsOwn) ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
  }
  ~SpawnSession() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnSession(const SpawnSession&) = delete;
  SpawnSession& operator=(const SpawnSession&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

bool handles_ctrl_c() {
  struct sigaction action {};
  ::sigaction(SIGINT, nullptr, &action);
  const bool has_handler = (action.sa_flags & SA_SIGINFO) != 0;
  return has_handler || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start(std::vector<std::string> words,
            const FileActions& files,
            SpawnSession::Of session,
            std::string_view if_missing,
            std::optional<std::vector<std::string>> environment = {}) {
  std::vector<char*> variables;
  if (environment) variables = pointers_to(*environment);
  pid_t pid = -1;
  const SpawnSession attributes(session);
  const int error = ::posix_spawnp(&pid,
                                   words.front().c_str(),
                                   files.get(),
                                   attributes.get(),
                                   pointers_to(words).data(),
                                   environment ? variables.data() : ::environ);
  if (error == ENOENT) {
    throw Error(
        ErrorKind::kResource,
        fmt::format(
            "the program {} was not found: {}", quoted_beginning(words.front()), if_missing));
  }
  if (error != 0) throw system_error("start " + words.front(), error);
  return pid;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// A file without a name, that holds the input. A pipe would need a second thread, or SIGPIPE.
Fd file_of(std::string_view text) {
  Fd file(::memfd_create("program-input", MFD_CLOEXEC));
  if (!file) throw system_error("make the input of a program", errno);
  while (!text.empty()) {
    const auto written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write the input of a program", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string read_once(int fd) {
  std::string bytes(64 * 1024, '\0');
  while (true) {
    const auto got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
}

/// A pipe that is read to its end.
struct Reading {
  Fd fd;
  std::string* text = nullptr;
};

/// Returns false at the deadline.
bool read_all(std::array<Reading, 2> readings, Deadline deadline, const Interrupt& interrupt) {
  while (readings[0].fd || readings[1].fd) {
    std::array<pollfd, 2> entries{};
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = {readings[i].fd.get(), POLLIN, 0};
    const Timeout left = deadline.within(kInterruptEvery).left();
    const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(left.count()));
    for (std::size_t i = 0; ready > 0 && i < entries.size(); ++i) {
      if (entries[i].revents == 0) continue;
      const std::string bytes = read_once(entries[i].fd);
      *readings[i].text += bytes;
      if (bytes.empty()) readings[i].fd.reset();
    }
    let_interrupt(interrupt);
    if (deadline.passed()) return false;
  }
  return true;
}

/// A started program; killed and awaited unless `wait` was called. With a session of its own, its
/// children too: kubectl starts plug-ins.
class Child final {
 public:
  Child(pid_t pid, SpawnSession::Of session) : pid_(pid), session_(session) {}
  ~Child() {
    if (pid_ < 0) return;
    ::kill(session_ == SpawnSession::Of::kItsOwn ? -pid_ : pid_, SIGKILL);
    exit_code_of(pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() { return exit_code_of(std::exchange(pid_, -1)); }

 private:
  pid_t pid_;
  SpawnSession::Of session_;
};

}  // namespace

Answer ask_program(const Question& question, const Interrupt& interrupt) {
  const Fd in = file_of(question.input);
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  FileActions files;
  files.give(in.get(), STDIN_FILENO);
  files.give(out.writer.get(), STDOUT_FILENO);
  files.give(err.writer.get(), STDERR_FILENO);
  const auto session =
      handles_ctrl_c() ? SpawnSession::Of::kItsOwn : SpawnSession::Of::kThisProcess;
  Child child(start(question.words, files, session, question.if_missing, question.environment),
              session);
  out.writer.reset();
  err.writer.reset();
  Answer answer;
  const bool is_whole = read_all(
      {Reading{std::move(out.reader), &answer.out}, Reading{std::move(err.reader), &answer.err}},
      Deadline::after(question.patience),
      interrupt);
  if (is_whole) answer.exit_code = child.wait();
  return answer;
}

ProgramStream::ProgramStream(const std::vector<std::string>& words) {
  Pipe out = make_pipe();
  FileActions files;
  files.give_nothing(STDIN_FILENO);
  files.give(out.writer.get(), STDOUT_FILENO);
  files.give_nothing(STDERR_FILENO);
  pid_ = start(words, files, SpawnSession::Of::kThisProcess, Question{}.if_missing);
  out_ = std::move(out.reader);
}

ProgramStream::ProgramStream(ProgramStream&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)) {}

ProgramStream::~ProgramStream() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  exit_code_of(pid_);
}

std::string ProgramStream::read_some() {
  if (!out_) return {};
  std::string bytes = read_once(out_.get());
  if (bytes.empty()) out_.reset();
  return bytes;
}

int ProgramStream::wait() { return exit_code_of(std::exchange(pid_, -1)); }

}  // namespace peal::launch
