#include "peal/base/open_files.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {

void allow_open_files(long needed, std::string_view what) {
  const auto wanted = static_cast<rlim_t>(needed);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < wanted) {
    throw Error(ErrorKind::kResource,
                fmt::format("{} needs about {} open files, and this process may have {}: raise the "
                            "limit (ulimit -Hn)",
                            what,
                            needed,
                            limit.rlim_max));
  }
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace peal
