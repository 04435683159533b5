// Locks on single bytes of a file, far behind its contents. They belong to the open file and not to
// the process (F_OFD_SETLK), so that threads of one process exclude each other too, and end with
// it, however it ends. Used by the file store.
#pragma once

#include <cstddef>
#include <string>

#include "peal/base/clock.h"

namespace peal::store {

enum class LockByte : long long {
  kChange = 1ll << 40,       // held alone by whoever reads or writes the contents
  kAlive = (1ll << 40) + 1,  // shared by everyone who has the store open
};

/// Held alone by whoever has left the will of this number: who finds it free carries it out.
constexpr LockByte will_byte(std::size_t number) {
  return static_cast<LockByte>((1ll << 41) + static_cast<long long>(number));
}

enum class LockKind : unsigned char { kShared, kAlone };

/// Takes the lock, or turns a lock that this open file has into this kind. Returns whether it did:
/// not while another open file stands against it. Errors: resource (no locks on this file system).
bool try_lock(int fd, LockByte byte, LockKind kind);
void unlock(int fd, LockByte byte) noexcept;

/// LockByte::kChange, held alone for as long as this lives.
class ChangeLock {
 public:
  /// Waits for it by asking again, since the blocking form knows no deadline.
  /// Errors: timeout, which names the file; resource.
  ChangeLock(int fd, const std::string& path, Deadline deadline);
  ~ChangeLock();
  ChangeLock(const ChangeLock&) = delete;
  ChangeLock& operator=(const ChangeLock&) = delete;

 private:
  int fd_;
};

}  // namespace peal::store
