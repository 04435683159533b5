#include "peal/launch/kubernetes/kubectl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/pipe.h"

namespace peal::launch::kubernetes {
namespace {

/// The descriptors that a started kubectl gets.
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

pid_t start(std::vector<std::string> words, const FileActions& files) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, pointers[0], files.get(), nullptr, pointers.data(), ::environ);
  if (error == ENOENT) {
    throw Error(ErrorKind::kResource,
                fmt::format("the program {} was not found: install kubectl, or add its folder to "
                            "PATH",
                            quoted_beginning(words.front())));
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
  Fd file(::memfd_create("kubectl-input", MFD_CLOEXEC));
  if (!file) throw system_error("make the input of kubectl", errno);
  while (!text.empty()) {
    const auto written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write the input of kubectl", errno);
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

/// A started kubectl; killed and awaited unless `wait` was called.
class Child final {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    exit_code_of(pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() { return exit_code_of(std::exchange(pid_, -1)); }

 private:
  pid_t pid_;
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The last line that is no warning: kubectl writes the reason there.
std::string last_line(std::string_view err) {
  std::string_view best;
  while (!err.empty()) {
    const std::string_view line = err.substr(0, err.find('\n'));
    err.remove_prefix(std::min(err.size(), line.size() + 1));
    if (!line.empty() && !line.starts_with("Warning:")) best = line;
  }
  return printable(best.substr(0, 600));
}

}  // namespace

KubectlStream::KubectlStream(const std::vector<std::string>& words) {
  Pipe out = make_pipe();
  FileActions files;
  files.give_nothing(STDIN_FILENO);
  files.give(out.writer.get(), STDOUT_FILENO);
  files.give_nothing(STDERR_FILENO);
  pid_ = start(words, files);
  out_ = std::move(out.reader);
}

KubectlStream::KubectlStream(KubectlStream&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)) {}

KubectlStream::~KubectlStream() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  exit_code_of(pid_);
}

std::string KubectlStream::read_some() {
  if (!out_) return {};
  std::string bytes = read_once(out_.get());
  if (bytes.empty()) out_.reset();
  return bytes;
}

int KubectlStream::wait() { return exit_code_of(std::exchange(pid_, -1)); }

Kubectl::Kubectl(std::vector<std::string> command, Timeout patience)
    : command_(std::move(command)), patience_(patience) {}

std::vector<std::string> Kubectl::with_command(const std::vector<std::string>& words) const {
  std::vector<std::string> all = command_;
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Answer Kubectl::run(const std::vector<std::string>& words,
                    std::string_view input,
                    const Interrupt& interrupt) const {
  const Fd in = file_of(input);
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  FileActions files;
  files.give(in.get(), STDIN_FILENO);
  files.give(out.writer.get(), STDOUT_FILENO);
  files.give(err.writer.get(), STDERR_FILENO);
  Child child(start(with_command(words), files));
  out.writer.reset();
  err.writer.reset();
  Answer answer;
  if (!read_all({Reading{std::move(out.reader), &answer.out},
                 Reading{std::move(err.reader), &answer.err}},
                Deadline::after(patience_),
                interrupt)) {
    throw Error(ErrorKind::kResource,
                fmt::format("kubectl has not answered for {} s: check the connection with the "
                            "cluster, for example by `kubectl get pods`",
                            std::chrono::ceil<std::chrono::seconds>(patience_).count()));
  }
  answer.exit_code = child.wait();
  return answer;
}

std::string Kubectl::must(std::string_view during,
                          const std::vector<std::string>& words,
                          std::string_view input,
                          const Interrupt& interrupt) const {
  Answer answer = run(words, input, interrupt);
  if (answer.exit_code != 0) throw Error(ErrorKind::kResource, explain(during, answer.err));
  return std::move(answer.out);
}

KubectlStream Kubectl::stream(const std::vector<std::string>& words) const {
  return KubectlStream(with_command(words));
}

std::string explain(std::string_view during, std::string_view err) {
  const std::string reason = last_line(err);
  constexpr std::array kUnreachable = {"refused",
                                       "Unable to connect",
                                       "no such host",
                                       "i/o timeout",
                                       "deadline exceeded",
                                       "no configuration has been provided",
                                       "unable to load root certificates",
                                       "does not exist"};
  if (has(err, "Forbidden") || has(err, "forbidden")) {
    return fmt::format(
        "could not {}: the cluster does not permit it ({}): ask its administrator "
        "for the right to create, get, list, patch and delete jobs, pods, services "
        "and secrets in this namespace, or choose another namespace",
        during,
        reason);
  }
  if (has(err, "Unauthorized") || has(err, "must be logged in")) {
    return fmt::format(
        "could not {}: the cluster does not know this user ({}): log in to the "
        "cluster again",
        during,
        reason);
  }
  if (std::ranges::any_of(kUnreachable, [&](const char* part) { return has(err, part); })) {
    return fmt::format(
        "could not {}: kubectl reaches no cluster ({}): check `kubectl config "
        "current-context`, and the file in KUBECONFIG",
        during,
        reason);
  }
  return fmt::format("could not {}: kubectl says: {}", during, reason);
}

bool says_already_exists(const Answer& answer) {
  return answer.exit_code != 0 && has(answer.err, "AlreadyExists");
}

bool says_unknown_kind(const Answer& answer) {
  return answer.exit_code != 0 && has(answer.err, "have a resource type");
}

}  // namespace peal::launch::kubernetes
