#include "peal/system/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "peal/base/secret.h"
#include "peal/system/unreadable.h"

namespace peal {
namespace {

/// Opens without blocking: a pipe without a writer counts as an empty file.
Fd open_now(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) throw unreadable(std::strerror(errno));
  const int flags = ::fcntl(file.get(), F_GETFL);
  ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK);
  return file;
}

/// Appends without leaving another copy of the text in memory, since it may be a secret.
void append(std::string& text, std::string_view more) {
  if (text.capacity() - text.size() < more.size()) {
    std::string larger;
    const Wiped former(larger);
    larger.reserve(std::max(2 * text.capacity(), text.size() + more.size()));
    larger += text;
    text.swap(larger);
  }
  text += more;
}

}  // namespace

std::string read_text_file(const std::string& path, Bytes longest) {
  return read_text(open_now(path), longest);
}

std::string read_text(const Fd& file, Bytes longest) {
  std::string text;
  std::string part(1 << 16, '\0');
  const Wiped wiped(part);
  while (true) {
    const ssize_t size = ::read(file.get(), part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw unreadable(std::strerror(errno));
    if (size == 0) return text;
    append(text, std::string_view(part).substr(0, static_cast<std::size_t>(size)));
    if (Bytes(static_cast<std::int64_t>(text.size())) > longest) {
      throw unreadable(fmt::format("it holds more than {} bytes", longest.value));
    }
  }
}

}  // namespace peal
