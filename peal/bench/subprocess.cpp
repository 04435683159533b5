#include "peal/bench/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "peal/base/error.h"
#include "peal/launch/command.h"
#include "peal/launch/rank_command.h"
#include "peal/net/socket.h"
#include "peal/system/pipe.h"

namespace peal::bench {
namespace {

/// The file actions of posix_spawn; the destructor frees them.
class FileActions final {
 public:
  explicit FileActions(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// Reads until the other end is closed; returns false at the deadline.
bool read_to_end(int fd, std::string& text, Deadline deadline) {
  std::array<char, 4096> bytes;
  while (true) {
    pollfd entry{fd, POLLIN, 0};
    if (!net::poll_until({&entry, 1}, deadline)) return false;
    const auto got = ::read(fd, bytes.data(), bytes.size());
    if (got == 0) return true;
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return true;
  }
}

}  // namespace

Finished run_program(const std::vector<std::string>& words, Deadline deadline) {
  Pipe pipe = make_pipe();
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const FileActions files(pipe.writer.get());
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, pointers[0], files.get(), nullptr, pointers.data(), ::environ);
  if (error != 0) return {.status = 127, .output = system_error(words.front(), error).what()};
  pipe.writer.reset();
  Finished finished;
  if (!read_to_end(pipe.reader.get(), finished.output, deadline)) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return finished;
}

std::optional<std::string> find_program(const std::string& name) {
  const auto found = launch::find_command(name, launch::process_variables());
  if (found.exit_code != 0) return std::nullopt;
  return found.path;
}

}  // namespace peal::bench
