#include "peal/system/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "peal/base/error.h"
#include "peal/system/fd.h"
#include "peal/system/own_file.h"

namespace peal {
namespace {

/// A file beside `path` with the bytes; removed when this ends.
class UnfinishedFile final {
 public:
  UnfinishedFile(const std::string& path, std::string_view bytes) : name_(path + ".XXXXXX") {
    const Fd file(::mkostemp(name_.data(), O_CLOEXEC));  // mode 0600
    if (!file) throw system_error("cannot write " + path, errno);
    try {
      write_all(file, bytes, path);
    } catch (const Error&) {
      ::unlink(name_.c_str());
      throw;
    }
  }
  ~UnfinishedFile() { ::unlink(name_.c_str()); }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
};

}  // namespace

void write_whole_file(const std::string& path, std::string_view bytes) {
  const UnfinishedFile unfinished(path, bytes);
  if (::rename(unfinished.name(), path.c_str()) != 0) {
    throw system_error("cannot write " + path, errno);
  }
}

bool write_first_whole_file(const std::string& path, std::string_view bytes) {
  const UnfinishedFile unfinished(path, bytes);
  if (::link(unfinished.name(), path.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  const bool has_no_links = errno == EPERM || errno == EOPNOTSUPP;  // the file system
  if (!has_no_links) throw system_error("cannot write " + path, errno);
  if (::access(path.c_str(), F_OK) == 0) return false;
  if (::rename(unfinished.name(), path.c_str()) == 0) return true;
  throw system_error("cannot write " + path, errno);
}

}  // namespace peal
