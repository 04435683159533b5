#include "peal/system/stop_flag.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "peal/base/error.h"
#include "peal/system/fd.h"
#include "peal/system/own_file.h"

namespace peal {
namespace {

/// The content of the file: 0: none, kWarning, or a signal. The guard writes it before it looks for
/// locks, and a process locks the file before it reads. So a process that begins to look while the
/// guard sets the flag notices the flag, or gets the signal.
using Request = std::atomic<std::int32_t>;
static_assert(Request::is_always_lock_free);

constexpr std::int32_t kWarning = -1;
constexpr Bytes kSize(sizeof(Request));

Request& request_in(const Mapping& mapping) {
  return *reinterpret_cast<Request*>(mapping.bytes().data());
}

/// Of the open file, and so of the object: the kernel unlocks when the last process that has
/// the file open from here has ended.
struct flock lock_of_type(short type) {
  return {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
}

void set_lock(const Fd& file, short type) {
  struct flock lock = lock_of_type(type);
  ::fcntl(file.get(), F_OFD_SETLK, &lock);  // if it fails, the guard sends SIGTERM
}

bool is_flag(const Fd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == kSize.value;
}

}  // namespace

StopFlag::StopFlag(Fd file)
    : file_(std::move(file)), mapping_(Mapping::of_file(file_.get(), kSize)) {}

StopFlag StopFlag::create(const std::string& path) {
  Fd file = make_own_file(path);
  if (::ftruncate(file.get(), kSize.value) != 0) throw system_error("cannot make " + path, errno);
  return StopFlag(std::move(file));
}

std::optional<StopFlag> StopFlag::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || !is_flag(file)) return std::nullopt;
  return StopFlag(std::move(file));
}

void StopFlag::watch() const { set_lock(file_, F_RDLCK); }
void StopFlag::unwatch() const { set_lock(file_, F_UNLCK); }

bool StopFlag::is_watched() const {
  struct flock lock = lock_of_type(F_WRLCK);
  return ::fcntl(file_.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void StopFlag::set(int signal) const {
  request_in(mapping_).store(signal == 0 ? kWarning : signal);
}
bool StopFlag::is_set() const { return request_in(mapping_).load() != 0; }
int StopFlag::signal() const { return std::max(0, request_in(mapping_).load()); }

}  // namespace peal
