#include "peal/base/private_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/own_file.h"
#include "peal/base/process_state.h"

namespace peal {
namespace {

std::filesystem::path make_folder(const std::string& prefix, const std::filesystem::path& parent) {
  std::string name = parent / fmt::format("{}{}.XXXXXX", prefix, ::getpid());
  if (::mkdtemp(name.data()) == nullptr) throw system_error("cannot make " + name, errno);
  return name;
}

Fd open_folder(const std::filesystem::path& folder) {
  return Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// 0, or errno: EWOULDBLOCK where another open folder holds the lock.
int try_lock(const Fd& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno; }

/// Takes the lock of a folder that has just been made. Nothing where another run, which cannot see
/// this process, has taken it for a leftover in between.
std::optional<Fd> try_keep(const std::filesystem::path& path) {
  Fd folder = open_folder(path);
  if (!folder && errno == ENOENT) return std::nullopt;
  if (!folder) throw system_error("cannot open " + path.string(), errno);
  if (try_lock(folder) == EWOULDBLOCK || !std::filesystem::exists(path)) return std::nullopt;
  return folder;
}

void remove_leftover(const std::filesystem::path& path) {
  const Fd folder = open_folder(path);
  struct stat status {};
  // In a folder that others can write to, the name alone proves nothing.
  if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) return;
  if (try_lock(folder) != 0) return;
  std::error_code stays;
  std::filesystem::remove_all(path, stays);
}

}  // namespace

std::filesystem::path folder_of_the_system() {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  return unknown ? "/tmp" : std::filesystem::absolute(folder);
}

void remove_folders_of_the_dead(const std::string& prefix, const std::filesystem::path& parent) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(parent, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (is_left_by_the_dead(entry->path().filename(), prefix)) remove_leftover(entry->path());
  }
}

bool is_left_by_the_dead(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  pid_t pid = 0;
  const auto [end, error] =
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
  if (error != std::errc() || pid <= 0) return false;
  const bool is_gone = ::kill(pid, 0) != 0 && errno == ESRCH;
  return is_gone || state_of_process(pid) == ProcessState::kZombie;
}

PrivateFolder::PrivateFolder(const std::string& prefix, const std::filesystem::path& parent) {
  remove_folders_of_the_dead(prefix, parent);
  std::optional<Fd> lock;
  while (!lock) {  // hardly ever twice
    path_ = make_folder(prefix, parent);
    lock = try_keep(path_);
  }
  lock_ = std::move(*lock);
}

PrivateFolder::~PrivateFolder() {
  std::error_code left;
  std::filesystem::remove_all(path_, left);
}

std::string PrivateFolder::write(const std::string& name, const std::string& text) const {
  std::string path = path_ / name;
  write_all(make_own_file(path), text, path);
  return path;
}

}  // namespace peal
