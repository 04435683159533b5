#include "peal/train/checkpoint/unfinished.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "peal/base/error.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInfix = ".unfinished-";
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// "<target>.unfinished-<8 random letters>"
fs::path unfinished_name(const fs::path& target) {
  std::random_device random;
  std::string name = target.string() + kInfix;
  for (int i = 0; i < 8; ++i) name += static_cast<char>('a' + random() % 26);
  return name;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Returns no descriptor if the name exists already.
Fd create(const fs::path& path, Unfinished::Kind kind) {
  if (kind == Unfinished::Kind::kFile) {
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file && errno != EEXIST) throw system_error("cannot make " + path.string(), errno);
    return file;
  }
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return Fd();
    throw system_error("cannot make " + path.string(), errno);
  }
  Fd folder(::open(path.c_str(), kFolderFlags));
  if (!folder && errno != ENOENT) throw system_error("cannot open " + path.string(), errno);
  return folder;
}

/// Returns 0 or errno. EWOULDBLOCK: another open descriptor holds the lock.
int lock_without_waiting(const Fd& fd) {
  return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

void remove_if_unlocked(const fs::path& path) {
  Fd fd(::open(path.c_str(), kFolderFlags));
  if (!fd) fd = Fd(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd || lock_without_waiting(fd) != 0) return;
  std::error_code stays;
  fs::remove_all(path, stays);
}

}  // namespace

Unfinished::Unfinished(fs::path target, Kind kind) : target_(std::move(target)), kind_(kind) {
  // Repeats if another process took the new name for a leftover before it was locked.
  while (!descriptor_) {
    path_ = unfinished_name(target_);
    descriptor_ = create(path_, kind_);
    if (!descriptor_) continue;
    std::error_code unknown;
    if (lock_without_waiting(descriptor_) == EWOULDBLOCK || !fs::exists(path_, unknown)) {
      descriptor_.reset();
    }
  }
}

Unfinished::~Unfinished() {
  if (is_published_) return;
  std::error_code stays;
  fs::remove_all(path_, stays);
}

void Unfinished::publish() {
  if (kind_ == Kind::kFile) {
    sync_file(descriptor_, path_);
  } else {
    sync_folder(path_);
  }
  // A rename replaces a file, but of folders only an empty one.
  if (::rename(path_.c_str(), target_.c_str()) == 0) {
    is_published_ = true;
  } else if (kind_ == Kind::kFolder && (errno == EEXIST || errno == ENOTEMPTY)) {
    replace_folder();
  } else {
    throw system_error("cannot rename " + path_.string() + " to " + target_.string(), errno);
  }
  sync_folder(folder_of(target_));
}

void Unfinished::replace_folder() {
  // The old folder gets the name of the new one, and the destructor removes it.
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  throw Error(ErrorKind::kResource,
              target_.string() +
                  " exists already, and this file system cannot replace a folder in "
                  "one step: remove the folder, or use another name");
}

void remove_unfinished(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (name.starts_with(prefix) && name.find(kInfix) != std::string::npos) {
      remove_if_unlocked(entry->path());
    }
  }
}

void remove_at_once(const fs::path& path) {
  const fs::path away = unfinished_name(path);
  if (::rename(path.c_str(), away.c_str()) != 0) {
    throw system_error("cannot remove " + path.string(), errno);
  }
  std::error_code failure;
  fs::remove_all(away, failure);
  if (failure) throw system_error("cannot remove " + away.string(), failure.value());
}

void sync_file(const Fd& file, const fs::path& path) {
  if (::fsync(file.get()) != 0) throw system_error("cannot write " + path.string(), errno);
}

void sync_folder(const fs::path& folder) {
  const Fd descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) throw system_error("cannot open " + folder.string(), errno);
  // Some file systems of networks cannot sync a folder; their renames are durable at once.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    throw system_error("cannot write " + folder.string(), errno);
  }
}

}  // namespace peal::train
