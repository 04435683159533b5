// The contents of a file store: a log of all changes, which each handle replays into a table. Used
// by the file store, which holds ChangeLock around every call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"
#include "peal/store/table.h"
#include "peal/system/fd.h"

namespace peal::store {

/// Threads: one at a time. Errors: resource (the file system), usage (the file is not a store).
class FileLog {
 public:
  FileLog(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  Table& table() { return table_; }
  /// How many handles have joined since the log was begun.
  int members() const { return members_; }

  /// Empties the file and begins a log in it. Throws Error(usage) and does not touch the file if
  /// the file is neither empty nor a log.
  void begin();
  /// Replays the records that others have appended. Removes half a record that a crash has left.
  void catch_up();

  void append_set(std::string_view key, std::string_view value);
  void append_erase(std::string_view key);
  void append_member();

  struct LastWill {
    std::string key, value;
  };
  /// In the order in which they were left. The index of a will is also the number of its lock
  /// (file_lock.h).
  const std::vector<LastWill>& last_wills() const { return last_wills_; }
  void append_last_will(std::string_view key, std::string_view value);

 private:
  enum class Kind : std::uint8_t { kSet = 0, kErase, kMember, kWill };

  void append(Kind kind, std::string_view key, std::string_view value);
  void apply(std::string_view record);
  void forget();
  Bytes file_size() const;
  std::string read(Bytes offset, Bytes limit) const;
  Error failed(std::string_view doing) const;
  Error no_store() const;

  Fd fd_;
  std::string path_;
  Bytes end_;  // of the replayed part
  Table table_;
  int members_ = 0;
  std::vector<LastWill> last_wills_;
};

}  // namespace peal::store
