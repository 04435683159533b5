#include "peal/store/file_log.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/serialize.h"
#include "peal/net/frame.h"

namespace peal::store {
namespace {

constexpr std::string_view kMagic = "peal store 2\n";
constexpr Bytes kMagicSize(kMagic.size());
constexpr Bytes kHeader = 4_B;  // a record is a frame
constexpr Bytes kMaxRecord = kMaxKey + kMaxValue + 16_B;

std::size_t size_t_of(Bytes bytes) { return static_cast<std::size_t>(bytes.value); }

}  // namespace

Error FileLog::failed(std::string_view doing) const {
  return system_error(fmt::format("{} the store's file {}", doing, path_), errno);
}

Error FileLog::no_store() const {
  return Error(
      ErrorKind::kUsage,
      fmt::format("the file {} is not a store of peal, and was not changed: choose another path "
                  "for file://",
                  path_));
}

Bytes FileLog::file_size() const {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) throw failed("cannot read the status of");
  return Bytes(status.st_size);
}

std::string FileLog::read(Bytes offset, Bytes limit) const {
  const Bytes there = std::max(0_B, file_size() - offset);
  std::string text(size_t_of(std::min(there, limit)), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const off_t at = offset.value + static_cast<off_t>(done);
    const ssize_t count = ::pread(fd(), text.data() + done, text.size() - done, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed("cannot read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

void FileLog::begin() {
  const std::string beginning = read(0_B, kMagicSize);  // only a part of it after a crash
  if (!kMagic.starts_with(beginning)) throw no_store();
  if (::ftruncate(fd(), 0) != 0) throw failed("cannot empty");
  forget();
  if (::pwrite(fd(), kMagic.data(), kMagic.size(), 0) != static_cast<ssize_t>(kMagic.size())) {
    throw failed("cannot write");
  }
  end_ = kMagicSize;
}

void FileLog::catch_up() {
  const std::string text = read(end_, file_size());
  std::string_view rest = text;
  if (end_ == 0_B) {
    if (!rest.starts_with(kMagic)) throw no_store();
    rest.remove_prefix(kMagic.size());
    end_ = kMagicSize;
  }
  while (Bytes(rest.size()) >= kHeader) {
    const Bytes size(ByteReader(rest, "record").get_u32());
    if (size > kMaxRecord) throw no_store();
    if (Bytes(rest.size()) < kHeader + size) break;
    apply(rest.substr(size_t_of(kHeader), size_t_of(size)));
    rest.remove_prefix(size_t_of(kHeader + size));
    end_ += kHeader + size;
  }
  // This handle holds the ChangeLock, so half a record at the end comes from a crash.
  if (!rest.empty() && ::ftruncate(fd(), end_.value) != 0) throw failed("cannot repair");
}

void FileLog::apply(std::string_view record) {
  ByteReader reader(record, "record of the store's file");
  const auto kind = static_cast<Kind>(reader.get_u8());
  const std::string_view key = reader.get_text(kMaxKey);
  const std::string_view value = reader.get_text(kMaxValue);
  reader.finish();
  switch (kind) {
    case Kind::kSet:
      table_.set(key, value);
      return;
    case Kind::kErase:
      table_.erase(key);
      return;
    case Kind::kMember:
      ++members_;
      return;
    case Kind::kWill:
      last_wills_.push_back({std::string(key), std::string(value)});
      return;
  }
  throw no_store();
}

void FileLog::append_set(std::string_view key, std::string_view value) {
  append(Kind::kSet, key, value);
}

void FileLog::append_erase(std::string_view key) { append(Kind::kErase, key, ""); }

void FileLog::append_member() {
  append(Kind::kMember, "", "");
  ++members_;
}

void FileLog::append_last_will(std::string_view key, std::string_view value) {
  append(Kind::kWill, key, value);
  last_wills_.push_back({std::string(key), std::string(value)});
}

void FileLog::append(Kind kind, std::string_view key, std::string_view value) {
  ByteWriter record;
  record.put_u8(static_cast<std::uint8_t>(kind)).put_text(key).put_text(value);
  const std::string frame = net::frame_of(record.view());
  std::size_t done = 0;
  while (done < frame.size()) {
    const off_t at = end_.value + static_cast<off_t>(done);
    const ssize_t count = ::pwrite(fd(), frame.data() + done, frame.size() - done, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const Error error = failed("cannot write");
      forget();  // the table may be ahead of the file; the next call repairs both
      throw error;
    }
    done += static_cast<std::size_t>(count);
  }
  end_ += Bytes(static_cast<std::int64_t>(frame.size()));
}

void FileLog::forget() {
  end_ = 0_B;
  table_ = Table();
  members_ = 0;
  last_wills_.clear();
}

}  // namespace peal::store
