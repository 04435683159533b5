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

void write_whole_file(const std::string& path, std::string_view bytes) {
  std::string unfinished = path + ".XXXXXX";
  const Fd file(::mkostemp(unfinished.data(), O_CLOEXEC));  // mode 0600
  if (!file) throw system_error("cannot write " + path, errno);
  try {
    write_all(file, bytes, path);
    if (::rename(unfinished.c_str(), path.c_str()) != 0) {
      throw system_error("cannot write " + path, errno);
    }
  } catch (const Error&) {
    ::unlink(unfinished.c_str());
    throw;
  }
}

}  // namespace peal
