#include "peal/system/file_size.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {

void check_file_size(Bytes size, std::string_view what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (static_cast<rlim_t>(size.value) <= limit.rlim_cur) return;
  throw Error(
      ErrorKind::kResource,
      fmt::format("{} needs a file of {} bytes, but this process may create files of at most {} "
                  "bytes: raise the limit of file sizes (ulimit -f)",
                  what,
                  size.value,
                  limit.rlim_cur));
}

}  // namespace peal
