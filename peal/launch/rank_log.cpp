#include "peal/launch/rank_log.h"

#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {

LogFile open_log(const LaunchOptions& options, const std::string& name, Channel channel) {
  if (options.log_directory.empty()) return LogFile();
  const bool is_out = channel == Channel::kOut;
  const bool is_files = options.log_names == LogNames::kFiles;
  const std::filesystem::path path =
      std::filesystem::path(options.log_directory) /
      (is_files ? name + (is_out ? ".out" : ".err") : name + (is_out ? "/stdout" : "/stderr"));
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  try {
    return LogFile(path);
  } catch (const Error& problem) {
    throw Error(
        problem.kind(),
        fmt::format("{}: {}", is_files ? "--log-dir" : "--output-filename", problem.message()));
  }
}

}  // namespace peal::launch
