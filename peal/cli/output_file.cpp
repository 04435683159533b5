#include "peal/cli/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "peal/base/error.h"
#include "peal/system/own_file.h"

namespace peal::cli {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  constexpr mode_t kMode = 0666;
  fd_ = Fd(::open(path_.c_str(), kFlags | O_EXCL, kMode));
  if (fd_) {
    state_ = State::kMade;
    return;
  }
  fd_ = Fd(::open(path_.c_str(), kFlags, kMode));
  if (!fd_) throw system_error("cannot write " + path_, errno);
}

OutputFile::~OutputFile() {
  if (state_ == State::kMade) ::unlink(path_.c_str());
}

void OutputFile::append(std::string_view text) {
  if (!fd_) return;
  const bool is_first = std::exchange(state_, State::kWritten) != State::kWritten;
  if (is_first && ::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) {  // pipes have no length
    throw system_error("cannot write " + path_, errno);
  }
  const off_t begin = ::lseek(fd_.get(), 0, SEEK_END);
  try {
    write_all(fd_, text, path_);
  } catch (const Error&) {
    if (begin >= 0) static_cast<void>(::ftruncate(fd_.get(), begin));
    throw;
  }
}

}  // namespace peal::cli
