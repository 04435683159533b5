#include "peal/store/file_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/store/file_lock.h"
#include "peal/store/file_log.h"
#include "peal/store/table.h"
#include "peal/system/per_process.h"
#include "peal/system/withheld.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;

/// How long a leaving handle waits for the lock, which other handles hold for microseconds.
constexpr milliseconds kLeave(1000);

/// Sleeps a little longer each time, never beyond the deadline.
class Pause {
 public:
  void sleep(Deadline deadline) {
    std::this_thread::sleep_until(deadline.within(length_).at());
    length_ = std::min(length_ * 3 / 2, Duration(milliseconds(25)));
  }

 private:
  Duration length_ = milliseconds(1);
};

/// Sets the will's key, unless the key exists. The caller holds the ChangeLock.
void carry_out(FileLog& log, const FileLog::LastWill& will) {
  if (log.table().find(will.key) != nullptr) return;
  const FileLog::LastWill done = will;
  log.table().set(done.key, done.value);
  log.append_set(done.key, done.value);
}

class FileStore final : public Store {
 public:
  FileStore(FileLog log, Timeout timeout) : log_(std::move(log)), timeout_(timeout) {}

  /// Does nothing in a forked child, because the parent still uses the file.
  ~FileStore() override {
    if (owner_.is_current()) leave();
  }

  void set(std::string_view key, std::string_view value) override {
    locked(own_deadline(), [&](FileLog& log) {
      log.table().set(key, value);
      log.append_set(key, value);
    });
  }

  std::string get(std::string_view key, Deadline deadline) override {
    for (Pause pause;; pause.sleep(deadline)) {
      const bool last = deadline.passed();
      if (auto value = find(key, with_grace(deadline))) return *value;
      carry_out_wills_of_ended_owners(with_grace(deadline));
      if (last) throw missing_keys(std::vector{std::string(key)});
    }
  }

  std::optional<std::string> try_get(std::string_view key) override {
    return find(key, own_deadline());
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return locked(own_deadline(), [&](FileLog& log) {
      const std::int64_t sum = log.table().add(key, amount);
      log.append_set(key, *log.table().find(key));
      return sum;
    });
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return locked(own_deadline(), [&](FileLog& log) {
      std::string value = log.table().compare_set(key, expected, desired);
      const std::string* now = log.table().find(key);
      if (now != nullptr && *now == desired) log.append_set(key, desired);
      return value;
    });
  }

  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    for (Pause pause;; pause.sleep(deadline)) {
      const bool last = deadline.passed();
      const auto missing =
          locked(with_grace(deadline), [&](FileLog& log) { return log.table().missing(keys); });
      if (missing.empty()) return;
      carry_out_wills_of_ended_owners(with_grace(deadline));
      if (last) throw missing_keys(missing);
    }
  }

  bool erase(std::string_view key) override {
    return locked(own_deadline(), [&](FileLog& log) {
      const bool existed = log.table().erase(key);
      if (existed) log.append_erase(key);
      return existed;
    });
  }

  void set_will(std::string_view key, std::string_view value) override {
    check_key(key);
    check_value(key, value);
    locked(own_deadline(), [&](FileLog& log) {
      const std::size_t number = log.last_wills().size();
      if (!try_lock(log.fd(), will_byte(number), LockKind::kAlone)) {
        throw Error(ErrorKind::kBug,
                    fmt::format("the lock of will {} in {} is taken", number, log.path()));
      }
      try {
        log.append_last_will(key, value);
        own_wills_.insert(number);
      } catch (const std::exception&) {
        unlock(log.fd(), will_byte(number));
        throw;
      }
    });
  }

  bool answers(Deadline deadline) override {
    try {
      locked(deadline, [](FileLog&) {});
      return true;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  Deadline own_deadline() const { return Deadline::after(timeout_); }

  /// Calls `use` with an up-to-date table while no other call and no other handle reads or writes
  /// the file.
  template <class Use>
  std::invoke_result_t<Use, FileLog&> locked(Deadline deadline, Use&& use) {
    const auto is_free = [](bool in_use) { return !in_use; };
    if (!in_use_.wait(deadline, is_free, [](bool& in_use) { in_use = true; })) {
      throw locked_too_long(log_.path());
    }
    struct End {
      Guarded<bool>& in_use;
      ~End() {
        in_use.update([](bool& value) { value = false; });
      }
    } const end{in_use_};
    const ChangeLock lock(log_.fd(), log_.path(), deadline);
    log_.catch_up();
    return use(log_);
  }

  std::optional<std::string> find(std::string_view key, Deadline deadline) {
    return locked(deadline, [&](FileLog& log) -> std::optional<std::string> {
      const std::string* value = log.table().find(key);
      if (value == nullptr) return std::nullopt;
      return *value;
    });
  }

  /// Each waiting handle carries out the last wills of handles that have ended. Cost: a system call
  /// for each will whose key does not exist.
  void carry_out_wills_of_ended_owners(Deadline deadline) {
    locked(deadline, [&](FileLog& log) {
      for (std::size_t number = 0; number < log.last_wills().size(); ++number) {
        const FileLog::LastWill& will = log.last_wills()[number];
        if (own_wills_.contains(number) || log.table().find(will.key) != nullptr) continue;
        if (!try_lock(log.fd(), will_byte(number), LockKind::kAlone))
          continue;  // the will's owner still lives
        unlock(log.fd(), will_byte(number));
        carry_out(log, will);
      }
    });
  }

  /// The last handle removes the file. A file that remains after an error is harmless.
  void leave() noexcept;

  const OwnerProcess owner_;
  /// Whether a call uses `log_` and `own_wills_`. Not a mutex, because calls wait for other
  /// processes meanwhile, and each call has its own deadline.
  Guarded<bool> in_use_{false};
  FileLog log_;
  std::set<std::size_t> own_wills_;
  Timeout timeout_;
};

Fd open_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  // The locks show which processes live. They last as long as the open file, so children must not
  // inherit it.
  Fd fd = withheld_from_children(Fd(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR)));
  if (!fd) throw system_error(fmt::format("cannot open the store's file {}", path), errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw system_error(fmt::format("cannot read the status of the store's file {}", path), errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is not a regular file: choose another path for file://", path));
  }
  if (status.st_uid != ::geteuid()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the store's file {} belongs to another user: choose another path for "
                            "file://, in your own folder",
                            path));
  }
  return fd;
}

/// Makes the file readable for its user only, because it may hold the ranks' secret. To be called
/// only for a file that is known to be a store.
void keep_others_out(int fd, const std::string& path) {
  struct stat status {};
  const bool is_private = ::fstat(fd, &status) == 0 && (status.st_mode & 0077) == 0;
  if (!is_private && ::fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
    throw system_error(fmt::format("cannot make the store's file {} private", path), errno);
  }
}

/// Whether the path still leads to this open file. The last handle may have removed it meanwhile.
bool is_at(int fd, const std::string& path) {
  struct stat opened {};
  struct stat found {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

void FileStore::leave() noexcept {
  try {
    const ChangeLock lock(log_.fd(), log_.path(), Deadline::after(kLeave));
    const bool last = try_lock(log_.fd(), LockByte::kAlive, LockKind::kAlone);
    if (last && is_at(log_.fd(), log_.path())) ::unlink(log_.path().c_str());
    if (!last) log_.catch_up();
    for (const std::size_t number : own_wills_) {
      if (!last) carry_out(log_, log_.last_wills().at(number));
    }
    // Still under the ChangeLock: the next handle to leave must not count this one.
    unlock(log_.fd(), LockByte::kAlive);
  } catch (const std::exception&) {
    // For example, a stopped process holds the ChangeLock. That process still uses the file, so the
    // file stays.
  }
}

/// Joins the handles that use the file, or begins a new log if no handle does. Returns false if
/// neither is possible now. The caller holds the ChangeLock.
bool try_join(FileLog& log, int members) {
  if (try_lock(log.fd(), LockByte::kAlive, LockKind::kAlone)) {
    log.begin();
  } else {
    log.catch_up();
    if (members != 0 && log.members() >= members) return false;
  }
  if (!try_lock(log.fd(), LockByte::kAlive, LockKind::kShared)) return false;
  log.append_member();
  return true;
}

}  // namespace

std::unique_ptr<Store> open_file_store(const std::string& path,
                                       FileStoreOptions options,
                                       Deadline deadline,
                                       const Interrupt& interrupt) {
  for (Pause pause;; pause.sleep(deadline)) {
    FileLog log(open_file(path), path);
    {
      const ChangeLock lock(log.fd(), path, with_grace(deadline));
      if (is_at(log.fd(), path) && try_join(log, options.members)) {
        keep_others_out(log.fd(), path);
        return std::make_unique<FileStore>(std::move(log), options.timeout);
      }
    }
    if (deadline.passed()) {
      throw Error(ErrorKind::kTimeout,
                  fmt::format("the store's file {} serves a job whose {} members have all come and "
                              "have not ended: end that job, or choose another path",
                              path,
                              options.members));
    }
    let_interrupt(interrupt);
  }
}

}  // namespace peal::store
