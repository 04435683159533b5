#include "peal/system/open_files.h"

#include <errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/per_process.h"

namespace peal {

void allow_open_files(long needed, std::string_view what) {
  allow_open_files(needed, needed, what);
}

void allow_open_files(long needed, long wished, std::string_view what) {
  // Two threads must not interleave, since the system cannot compare and set the limit: the thread
  // that needs less could lower the limit that the other thread has just raised. The limit belongs
  // to the process, so the mutex does too.
  static constinit PerProcess<std::mutex> one_at_a_time;
  const std::lock_guard lock(one_at_a_time.get());
  const auto fail = [&](int error) {
    return system_error(fmt::format("{} needs about {} open files, but the limit of this process "
                                    "cannot be raised",
                                    what,
                                    needed),
                        error);
  };
  const auto least = static_cast<rlim_t>(needed);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw fail(errno);
  const rlim_t wanted = std::min(static_cast<rlim_t>(std::max(needed, wished)), limit.rlim_max);
  if (limit.rlim_max < least) {
    throw Error(ErrorKind::kResource,
                fmt::format("{} needs about {} open files, but this process may have {}: raise the "
                            "limit (ulimit -Hn)",
                            what,
                            needed,
                            limit.rlim_max));
  }
  if (limit.rlim_cur >= wanted) return;
  const bool is_needed = limit.rlim_cur < least;
  limit.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 && is_needed) throw fail(errno);
}

long open_files() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<long>(std::distance(begin(files), end(files))) -
         1;  // without the descriptor of this iteration
}

}  // namespace peal
