#include "peal/system/private_folder.h"

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
#include "peal/system/own_file.h"
#include "peal/system/process_state.h"

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

/// Returns 0 or errno. EWOULDBLOCK: another open descriptor of the folder holds the lock.
int try_lock(const Fd& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno; }

/// Locks a folder that was just created. Returns nothing if another run has removed the folder or
/// is removing it: a run that cannot see this process takes the folder for a leftover.
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
  // If other users can write to the parent, the name alone proves nothing.
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

void remove_folders_of_ended_processes(const std::string& prefix,
                                       const std::filesystem::path& parent) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(parent, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (is_of_an_ended_process(entry->path().filename(), prefix)) remove_leftover(entry->path());
  }
}

bool is_of_an_ended_process(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  pid_t pid = 0;
  const auto [end, error] =
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
  if (error != std::errc() || pid <= 0) return false;
  const bool is_gone = ::kill(pid, 0) != 0 && errno == ESRCH;
  return is_gone || state_of_process(pid) == ProcessState::kZombie;
}

PrivateFolder::PrivateFolder(const std::string& prefix, const std::filesystem::path& parent) {
  remove_folders_of_ended_processes(prefix, parent);
  std::optional<Fd> lock;
  while (!lock) {  // rarely more than once
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
