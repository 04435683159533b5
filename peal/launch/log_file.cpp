#include "peal/launch/log_file.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "peal/system/own_file.h"

namespace peal::launch {
namespace {

/// Writes at an offset. Returns how many bytes were written; if fewer than all, errno says why.
std::size_t write_at(const Fd& file, off_t at, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const off_t next = at + static_cast<off_t>(done);
    const auto wrote = ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, next);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  return done;
}

/// The start of the last line before `end`. Nothing if that line is long.
std::optional<off_t> line_start_before(const Fd& file, off_t end) {
  if (end == 0) return 0;
  std::array<char, 4096> bytes;
  const off_t from = std::max<off_t>(0, end - static_cast<off_t>(bytes.size()));
  const auto got = ::pread(file.get(), bytes.data(), static_cast<std::size_t>(end - from), from);
  const std::string_view text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos) return std::nullopt;
  return from + static_cast<off_t>(newline) + 1;
}

}  // namespace

LogFile::LogFile(std::string path) : file_(make_own_file(path)) { lost_.where = std::move(path); }

void LogFile::append(std::string_view bytes) {
  if (!file_) return;
  const std::size_t wrote = write_at(file_, size_, bytes);
  const int error = errno;
  if (wrote == bytes.size()) {
    size_ += std::ssize(bytes);
    is_in_gap_ = false;
  } else if (is_in_gap_) {  // the gap continues: a part of these bytes would look like its end
    lost_.bytes += bytes.size();
    [[maybe_unused]] const int stays = ::ftruncate(file_.get(), size_);
  } else {
    size_ += static_cast<off_t>(wrote);
    fail(error, bytes.size() - wrote);
  }
}

void LogFile::close() {
  if (file_ && ::close(file_.release()) != 0) fail(errno, 0);
}

void LogFile::fail(int error, std::uint64_t bytes) {
  if (lost_.error == 0) lost_.error = error;
  lost_.bytes += bytes;
  if (file_ && !std::exchange(is_in_gap_, true)) begin_gap(error);
}

/// Writes the note over the last lines, since a full disk has no room beyond them.
void LogFile::begin_gap(int error) {
  std::string line = fmt::format("\npeal: output is missing here: {}\n", ::strerrordesc_np(error));
  const off_t latest = std::max<off_t>(0, size_ - std::ssize(line));
  const std::optional<off_t> line_start = line_start_before(file_, latest);
  const off_t cut = line_start.value_or(latest);
  if (line_start) line.erase(0, 1);
  const off_t end = cut + std::ssize(line);
  if (write_at(file_, cut, line) < line.size()) return;  // no room for as much as a line
  if (end < size_ && ::ftruncate(file_.get(), end) != 0) return;
  lost_.bytes += static_cast<std::uint64_t>(std::max<off_t>(0, size_ - cut));
  size_ = end;
}

}  // namespace peal::launch
