#include "peal/launch/agents/file_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/own_file.h"

namespace peal::launch::agents {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPart = 1 << 18;
constexpr mode_t kPermissions = 0777;

Error unreadable(const std::string& path, const std::error_code& error) {
  return {ErrorKind::kUsage,
          fmt::format("cannot copy {} to the hosts: {}", printable(path), error.message())};
}

}  // namespace

std::vector<FileToCopy> files_below(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::is_directory(from, error)) {
    if (!fs::is_regular_file(from, error)) {
      if (!error) error = std::make_error_code(std::errc::invalid_argument);
      throw unreadable(from, error);
    }
    return {{from, to}};
  }
  std::vector<FileToCopy> files;
  for (fs::recursive_directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file(error)) continue;
    files.push_back({entry->path(), fs::path(to) / entry->path().lexically_relative(from)});
  }
  if (error) throw unreadable(from, error);
  return files;
}

std::optional<FilePart> FilePartReader::next() {
  if (index_ == files_.size()) return std::nullopt;
  const FileToCopy& file = files_[index_];
  FilePart part{.path = file.to};
  if (!file_) {
    file_ = Fd(::open(file.from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) throw system_error("cannot read " + printable(file.from), errno);
    part.is_first = true;
  }
  struct stat status {};
  ::fstat(file_.get(), &status);
  part.permissions = status.st_mode & kPermissions;
  part.bytes.resize(kPart);
  ssize_t got = 0;
  do {
    got = ::read(file_.get(), part.bytes.data(), part.bytes.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw system_error("cannot read " + printable(file.from), errno);
  part.bytes.resize(static_cast<std::size_t>(got));
  if (got == 0) {
    part.is_last = true;
    file_.reset();
    ++index_;
  }
  return part;
}

FilePartWriter::~FilePartWriter() {
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

void FilePartWriter::take(const FilePart& part) {
  const fs::path path = directory_ / part.path;
  if (part.is_first) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::string name = path.string() + ".XXXXXX";
    file_ = Fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!file_) throw system_error("cannot write " + printable(path.string()), errno);
    unfinished_ = name;
  }
  if (!file_) throw Error(ErrorKind::kMismatch, "a part of a file that has no beginning");
  write_all(file_, part.bytes, path.string());
  if (!part.is_last) return;
  ::fchmod(file_.get(), part.permissions);
  file_.reset();
  if (::rename(unfinished_.c_str(), path.c_str()) != 0) {
    throw system_error("cannot write " + printable(path.string()), errno);
  }
  unfinished_.clear();
}

}  // namespace peal::launch::agents
