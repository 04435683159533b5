#include "peal/system/withheld.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace peal {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::size_t kNumbers = 1 << 18;

/// For each number of a descriptor, a mark of the file that was withheld last under this number. If
/// the number belongs to another file now, the child keeps it. Without a lock: a fork may interrupt
/// a thread that changes the table, and the child has only the thread that forked. The array takes
/// memory only where it is used.
constinit std::array<std::atomic<std::uint64_t>, kNumbers> withheld{};
/// The highest number that was ever used, plus 1.
constinit std::atomic<std::size_t> used = 0;

/// A mark of the file behind a descriptor, from its device and inode; 0 if the descriptor is
/// closed.
std::uint64_t mark_of(int fd) noexcept {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return 0;
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  const std::uint64_t mark = static_cast<std::uint64_t>(file.st_dev) * kSpread ^ file.st_ino;
  return mark == 0 ? 1 : mark;
}

/// Replaces each withheld descriptor with a dead one, which only names a folder.
class Replacement {
 public:
  void replace(int fd) noexcept {
    if (dead_ < 0) {
      ::close(fd);  // the table of descriptors may be full
      dead_ = ::open("/", O_PATH | O_CLOEXEC);
    }
    if (fd == dead_) {
      is_in_place_ = true;
    } else if (dead_ < 0 || ::dup3(dead_, fd, O_CLOEXEC) < 0) {
      ::close(fd);
    }
  }
  void finish() const noexcept {
    if (dead_ >= 0 && !is_in_place_) ::close(dead_);
  }

 private:
  int dead_ = -1;
  bool is_in_place_ = false;
};

/// Runs in the child of a process that may have had several threads: only system calls.
void take_from_child() noexcept {
  const int error = errno;
  Replacement replacement;
  const std::size_t end = used.load(kRelaxed);
  for (std::size_t number = 0; number < end; ++number) {
    const std::uint64_t mark = withheld[number].load(kRelaxed);
    if (mark == 0) continue;
    const int fd = static_cast<int>(number);
    if (mark == mark_of(fd)) replacement.replace(fd);
    withheld[number].store(0, kRelaxed);
  }
  replacement.finish();
  errno = error;
}

void watch_forks() {
  static const int kRegistered = ::pthread_atfork(nullptr, nullptr, take_from_child);
  static_cast<void>(kRegistered);
}

}  // namespace

void withhold_from_children(int fd) noexcept {
  const auto number = static_cast<std::size_t>(fd);
  if (fd < 0 || number >= kNumbers) return;
  const int error = errno;
  watch_forks();
  std::size_t end = used.load(kRelaxed);
  while (end <= number && !used.compare_exchange_weak(end, number + 1, kRelaxed)) {
  }
  withheld[number].store(mark_of(fd), kRelaxed);
  errno = error;
}

}  // namespace peal
