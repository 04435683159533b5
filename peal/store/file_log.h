// The contents of a file store: a log of what was set and erased, which each handle replays into a
// table. Used by the file store, which holds ChangeLock around every call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/fd.h"
#include "peal/base/units.h"
#include "peal/store/table.h"

namespace peal::store {

/// Threads: one at a time. Errors: resource (the file system), usage (the file is no store).
class FileLog {
 public:
  FileLog(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  Table& table() { return table_; }
  /// How many have joined since the log was begun.
  int members() const { return members_; }

  /// Empties the file and begins a log in it. A file that was neither empty nor a log is left as it
  /// is: Error(usage).
  void begin();
  /// Replays what others have appended. What the crash of a writer left half-written goes away.
  void catch_up();

  void append_set(std::string_view key, std::string_view value);
  void append_erase(std::string_view key);
  void append_member();

  struct Will {
    std::string key, value;
  };
  /// In the order in which they were left: their numbers are those of their locks (file_lock.h).
  const std::vector<Will>& wills() const { return wills_; }
  void append_will(std::string_view key, std::string_view value);

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
  Bytes end_;  // of what was replayed
  Table table_;
  int members_ = 0;
  std::vector<Will> wills_;
};

}  // namespace peal::store
