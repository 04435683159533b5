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
#include "peal/base/per_process.h"
#include "peal/base/withheld.h"
#include "peal/store/file_lock.h"
#include "peal/store/file_log.h"
#include "peal/store/table.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;

/// How long one who leaves waits for the lock, which others hold for microseconds.
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

/// Does what the will says. The caller holds the ChangeLock.
void carry_out(FileLog& log, const FileLog::Will& will) {
  if (log.table().find(will.key) != nullptr) return;
  const FileLog::Will done = will;
  log.table().set(done.key, done.value);
  log.append_set(done.key, done.value);
}

class FileStore final : public Store {
 public:
  FileStore(FileLog log, Timeout timeout) : log_(std::move(log)), timeout_(timeout) {}

  /// In a forked child the parent still uses the file, and a thread of the parent's may have held
  /// the lock of the log.
  ~FileStore() override {
    if (owner_.is_current()) log_.with([this](FileLog& log) { leave(log); });
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
      carry_out_wills_of_the_gone(with_grace(deadline));
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
      carry_out_wills_of_the_gone(with_grace(deadline));
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
      const std::size_t number = log.wills().size();
      if (!try_lock(log.fd(), will_byte(number), LockKind::kAlone)) {
        throw Error(ErrorKind::kBug, fmt::format("will {} of {} is taken", number, log.path()));
      }
      try {
        log.append_will(key, value);
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

  /// Calls `use` with a table that is up to date, while nobody else reads or writes the file.
  template <class Use>
  std::invoke_result_t<Use, FileLog&> locked(Deadline deadline, Use&& use) {
    return log_.with([&](FileLog& log) {
      const ChangeLock lock(log.fd(), log.path(), deadline);
      log.catch_up();
      return use(log);
    });
  }

  std::optional<std::string> find(std::string_view key, Deadline deadline) {
    return locked(deadline, [&](FileLog& log) -> std::optional<std::string> {
      const std::string* value = log.table().find(key);
      if (value == nullptr) return std::nullopt;
      return *value;
    });
  }

  /// Whoever waits looks after those who are gone. Cost: a system call for each will whose key does
  /// not exist.
  void carry_out_wills_of_the_gone(Deadline deadline) {
    locked(deadline, [&](FileLog& log) {
      for (std::size_t number = 0; number < log.wills().size(); ++number) {
        const FileLog::Will& will = log.wills()[number];
        if (own_wills_.contains(number) || log.table().find(will.key) != nullptr) continue;
        if (!try_lock(log.fd(), will_byte(number), LockKind::kAlone))
          continue;  // it is still there
        unlock(log.fd(), will_byte(number));
        carry_out(log, will);
      }
    });
  }

  /// The last one removes the file. A file that stays behind all the same is harmless.
  void leave(FileLog& log) noexcept;

  const OwnerProcess owner_;
  Guarded<FileLog> log_;
  std::set<std::size_t> own_wills_;  // as the log
  Timeout timeout_;
};

Fd open_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  // The locks say which processes live. They last as long as the open file does.
  Fd fd = withheld_from_children(Fd(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR)));
  if (!fd) throw system_error(fmt::format("cannot open the store's file {}", path), errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw system_error(fmt::format("cannot look at the store's file {}", path), errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} is no file that can be a store: choose another path for file://", path));
  }
  if (status.st_uid != ::geteuid()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the store's file {} belongs to another user: choose another path for "
                            "file://, in a folder of your own",
                            path));
  }
  return fd;
}

/// The ranks' secret may come to lie in it. Only for a file that is known to be a store.
void keep_others_out(int fd, const std::string& path) {
  struct stat status {};
  const bool is_private = ::fstat(fd, &status) == 0 && (status.st_mode & 0077) == 0;
  if (!is_private && ::fchmod(fd, S_IRUSR | S_IWUSR) != 0) {
    throw system_error(fmt::format("cannot keep others from the store's file {}", path), errno);
  }
}

/// Whether the path still leads to this open file: its last user may have removed it meanwhile.
bool is_at(int fd, const std::string& path) {
  struct stat opened {};
  struct stat found {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &found) == 0 &&
         opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

void FileStore::leave(FileLog& log) noexcept {
  try {
    const ChangeLock lock(log.fd(), log.path(), Deadline::after(kLeave));
    const bool last = try_lock(log.fd(), LockByte::kAlive, LockKind::kAlone);
    if (last && is_at(log.fd(), log.path())) ::unlink(log.path().c_str());
    if (!last) log.catch_up();
    for (const std::size_t number : own_wills_) {
      if (!last) carry_out(log, log.wills().at(number));
    }
    // Under the same lock: whoever leaves next must not find this one still there.
    unlock(log.fd(), LockByte::kAlive);
  } catch (const std::exception&) {
    // Somebody is stopped while it holds the lock: it is not for us to remove the file.
  }
}

/// Joins whoever uses the file, or begins anew where nobody does. Returns false where that is not
/// possible now. The caller holds the ChangeLock.
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
                              "not yet ended: end that job, or choose another path",
                              path,
                              options.members));
    }
    let_interrupt(interrupt);
  }
}

}  // namespace peal::store
