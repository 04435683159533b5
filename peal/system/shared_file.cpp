#include "peal/system/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "peal/system/file_size.h"

namespace peal {
namespace {

/// A signal undoes a running allocation, so a large one might never finish in one step.
constexpr Bytes kGrowStep = 4_MiB;
constexpr std::string_view kWhat = "memory that the ranks of a host share";

}  // namespace

Fd make_shared_file(const char* name, Bytes size) {
  check_file_size(size, kWhat);
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw system_error("cannot make shared memory (memfd_create)", errno);
  if (::ftruncate(fd.get(), size.value) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw system_error(fmt::format("cannot make shared memory of {} bytes", size.value), errno);
  }
  return fd;
}

std::string path_of_shared_file(const Fd& file) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
}

Fd open_shared_file(const std::string& path, Bytes size) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) throw system_error("cannot open " + path, errno);
  if (file.st_size >= size.value) return fd;
  check_file_size(size, kWhat);
  if (::ftruncate(fd.get(), size.value) == 0) return fd;
  throw system_error("cannot make shared memory larger", errno);
}

std::optional<Error> why_no_shared_files() {
  try {
    make_shared_file("peal trial", 0_B);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

void grow_shared_file(int fd, Bytes from, Bytes to) {
  if (from < to) check_file_size(to, kWhat);
  while (from < to) {
    const Bytes step = std::min(to - from, kGrowStep);
    if (::fallocate(fd, 0, from.value, step.value) == 0) {
      from += step;
    } else if (errno != EINTR) {
      throw system_error(fmt::format("cannot share {} bytes of memory with this host's ranks (end "
                                     "other programs on this machine, or raise the memory limit of "
                                     "the container)",
                                     to.value),
                         errno);
    }
  }
}

void empty_shared_file(int fd, Bytes from, Bytes to) noexcept {
  static_cast<void>(
      ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from.value, (to - from).value));
}

void check_shared_file(int fd, Bytes least) {
  struct stat file {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!sealed || ::fstat(fd, &file) != 0 || file.st_size < least.value) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("the shared memory must have at least {} bytes and a seal that "
                            "keeps its size",
                            least.value));
  }
}

}  // namespace peal
