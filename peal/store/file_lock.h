// Locks on single bytes of a file, far behind its contents. The locks belong to the open file, not
// to the process (F_OFD_SETLK). So threads of one process exclude each other too, and a lock ends
// when the open file is closed, however the process ends. Used by the file store.
#pragma once

#include <cstddef>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/error.h"

namespace peal::store {

enum class LockByte : long long {
  kChange = 1ll << 40,       // held alone while a handle reads or writes the contents
  kAlive = (1ll << 40) + 1,  // shared by all handles that have the store open
};

/// The lock of the last will with this number. The handle that left the will holds it alone. If
/// another handle finds it free, the owner has ended, and the other handle carries out the will.
constexpr LockByte will_byte(std::size_t number) {
  return static_cast<LockByte>((1ll << 41) + static_cast<long long>(number));
}

enum class LockKind : unsigned char { kShared, kAlone };

/// Takes the lock, or changes a lock of this open file to this kind. Returns false while another
/// open file holds a conflicting lock. Errors: resource (the file system has no locks).
bool try_lock(int fd, LockByte byte, LockKind kind);
void unlock(int fd, LockByte byte) noexcept;

/// Error(timeout): another process has held the lock until the deadline.
Error locked_too_long(const std::string& path);

/// Holds LockByte::kChange alone during its lifetime.
class ChangeLock {
 public:
  /// Retries until it has the lock, since the blocking call has no deadline.
  /// Errors: timeout, which names the file; resource.
  ChangeLock(int fd, const std::string& path, Deadline deadline);
  ~ChangeLock();
  ChangeLock(const ChangeLock&) = delete;
  ChangeLock& operator=(const ChangeLock&) = delete;

 private:
  int fd_;
};

}  // namespace peal::store
