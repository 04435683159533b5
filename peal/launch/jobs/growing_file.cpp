#include "peal/launch/jobs/growing_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/system/fd.h"
#include "peal/system/own_file.h"

namespace peal::launch::jobs {
namespace {

/// More than the launcher writes over at the end of a log (log_file.cpp).
constexpr off_t kMostRewritten = 8192;

/// Reads up to `size` bytes at `offset`. Returns how many; 0 at the end of the file.
std::size_t read_at(int fd, char* bytes, std::size_t size, off_t offset, const std::string& path) {
  while (true) {
    const ssize_t got = ::pread(fd, bytes, size, offset);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw system_error("cannot read " + printable(path), errno);
  }
}

/// Where the last line of the file begins, if it is not long; else the end.
off_t start_of_last_line(int fd, off_t size, const std::string& path) {
  std::array<char, kMostRewritten> bytes;
  const off_t from = std::max<off_t>(0, size - kMostRewritten);
  const std::size_t got =
      read_at(fd, bytes.data(), static_cast<std::size_t>(size - from), from, path);
  std::string_view text(bytes.data(), got);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos) return from == 0 ? 0 : size;
  return from + static_cast<off_t>(newline) + 1;
}

}  // namespace

GrowingFile::GrowingFile(std::string path, Take take)
    : path_(std::move(path)),
      lines_([take = std::move(take)](LineEnd, std::string_view line) { take(line); }) {}

bool GrowingFile::has_grown() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return false;
  return status.st_size != offset_ || status.st_ino != file_;
}

bool GrowingFile::read_new() {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0 && errno == ENOENT) return false;
  Fd file;
  try {
    file = open_own_file(path_);
  } catch (const Error& error) {
    throw Error(ErrorKind::kResource,
                fmt::format("the log {} {}", printable(path_), error.message()));
  }
  if (::fstat(file.get(), &status) != 0) {
    throw system_error("cannot read " + printable(path_), errno);
  }
  notice_truncation(status, file.get());
  // Only up to this size, so that a rank that writes all the time does not keep others waiting.
  std::array<char, 65536> bytes;
  while (offset_ < status.st_size) {
    const off_t left = std::min<off_t>(status.st_size - offset_, std::ssize(bytes));
    const std::size_t got =
        read_at(file.get(), bytes.data(), static_cast<std::size_t>(left), offset_, path_);
    if (got == 0) break;  // it was truncated meanwhile
    offset_ += static_cast<off_t>(got);
    lines_.feed({bytes.data(), got});
  }
  return true;
}

void GrowingFile::notice_truncation(const struct stat& status, int fd) {
  if (file_ != 0 && file_ != status.st_ino) {
    restart_at(0);
  } else if (status.st_size < offset_) {
    const bool is_note = status.st_size > 0 && offset_ - status.st_size <= kMostRewritten;
    restart_at(is_note ? start_of_last_line(fd, status.st_size, path_) : 0);
  }
  file_ = status.st_ino;
}

/// The beginning of a line that was not completed is passed on as it is.
void GrowingFile::restart_at(off_t offset) {
  lines_.finish();
  offset_ = offset;
}

void GrowingFile::finish() { lines_.finish(); }

}  // namespace peal::launch::jobs
