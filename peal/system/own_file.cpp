#include "peal/system/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/unreadable.h"

namespace peal {
namespace {

bool is_own(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

}  // namespace

Fd make_own_file(const std::string& path) {
  struct stat former {};
  if (::lstat(path.c_str(), &former) == 0) {
    if (!is_own(former)) {
      throw Error(ErrorKind::kResource,
                  fmt::format("{} exists and is not a regular file of this user, so it is not "
                              "replaced: remove it, or choose another folder",
                              path));
    }
    ::unlink(path.c_str());
  }
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file) throw system_error("cannot make " + path, errno);
  return file;
}

void write_all(const Fd& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw system_error("cannot write " + path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

Fd open_own_file(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd file(::open(path.c_str(), kFlags));
  if (!file) throw unreadable(errno == ELOOP ? "it is a link" : std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw unreadable(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw unreadable("it is not a regular file");
  if (!is_own(status)) throw unreadable("it belongs to another user");
  return file;
}

std::string read_own_file(const std::string& path, Bytes longest) {
  return read_text(open_own_file(path), longest);
}

void remove_own_file(const std::string& path) noexcept {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && is_own(status)) ::unlink(path.c_str());
}

}  // namespace peal
