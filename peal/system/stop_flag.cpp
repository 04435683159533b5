#include "peal/system/stop_flag.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "peal/base/error.h"
#include "peal/system/fd.h"
#include "peal/system/own_file.h"

namespace peal {
namespace {

/// The content of the file. Each side writes its own word first, and then reads the word of the
/// other. So a process that begins to look while the guard sets the flag notices the flag, or gets
/// the signal.
struct Words {
  std::atomic<std::uint32_t> watchers;
  std::atomic<std::int32_t> request;  // 0: none, kWarning, or a signal
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::int32_t kWarning = -1;
constexpr Bytes kSize(sizeof(Words));

Words& words_of(const Mapping& mapping) {
  return *reinterpret_cast<Words*>(mapping.bytes().data());
}

bool is_flag(const Fd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == kSize.value;
}

}  // namespace

StopFlag StopFlag::create(const std::string& path) {
  const Fd file = make_own_file(path);
  if (::ftruncate(file.get(), kSize.value) != 0) throw system_error("cannot make " + path, errno);
  return StopFlag(Mapping::of_file(file.get(), kSize));
}

std::optional<StopFlag> StopFlag::open(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || !is_flag(file)) return std::nullopt;
  return StopFlag(Mapping::of_file(file.get(), kSize));
}

void StopFlag::watch() const { words_of(mapping_).watchers.fetch_add(1); }
void StopFlag::unwatch() const { words_of(mapping_).watchers.fetch_sub(1); }
bool StopFlag::is_watched() const { return words_of(mapping_).watchers.load() != 0; }
void StopFlag::set(int signal) const {
  words_of(mapping_).request.store(signal == 0 ? kWarning : signal);
}
bool StopFlag::is_set() const { return words_of(mapping_).request.load() != 0; }
int StopFlag::signal() const { return std::max(0, words_of(mapping_).request.load()); }

}  // namespace peal
