#include "peal/store/file_lock.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::store {
namespace {

int set_lock(int fd, LockByte byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock);
}

}  // namespace

bool try_lock(int fd, LockByte byte, LockKind kind) {
  if (set_lock(fd, byte, kind == LockKind::kAlone ? F_WRLCK : F_RDLCK) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw system_error("cannot lock the store's file; does its file system have fcntl locks?", errno);
}

void unlock(int fd, LockByte byte) noexcept { set_lock(fd, byte, F_UNLCK); }

Error locked_too_long(const std::string& path) {
  return Error(ErrorKind::kTimeout,
               fmt::format("another process has kept the store's file {} locked for too long: "
                           "check whether a process of the job is stopped",
                           path));
}

ChangeLock::ChangeLock(int fd, const std::string& path, Deadline deadline) : fd_(fd) {
  Duration pause = std::chrono::microseconds(50);
  while (!try_lock(fd, LockByte::kChange, LockKind::kAlone)) {
    if (deadline.passed()) throw locked_too_long(path);
    std::this_thread::sleep_until(deadline.within(pause).at());
    pause = std::min<Duration>(pause * 2, std::chrono::milliseconds(10));
  }
}

ChangeLock::~ChangeLock() { unlock(fd_, LockByte::kChange); }

}  // namespace peal::store
