#include "peal/system/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

  /// Whether the file has a second name.
  bool is_linked() const {
    struct stat status {};
    return ::stat(name_.c_str(), &status) == 0 && status.st_nlink == 2;
  }

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
  const int error = ::link(unfinished.name(), path.c_str()) == 0 ? 0 : errno;
  // On NFS the link may exist after an error: the answer was lost, and the request was repeated.
  if (error == 0 || unfinished.is_linked()) return true;
  if (error == EEXIST) return false;
  const bool has_no_links = error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
  if (!has_no_links) throw system_error("cannot write " + path, error);
  if (::access(path.c_str(), F_OK) == 0) return false;
  if (::rename(unfinished.name(), path.c_str()) == 0) return true;
  throw system_error("cannot write " + path, errno);
}

}  // namespace peal
