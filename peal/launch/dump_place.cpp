#include "peal/launch/dump_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/mac.h"
#include "peal/system/own_file.h"

namespace peal::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".dump";

/// "peal.dump", or "peal.node-1.dump"
std::string name_among_logs(const rendezvous::NodePlace& node) {
  return node.is_only() ? "peal.dump" : fmt::format("peal.node-{}.dump", node.node);
}

/// "JOB.dump". The ids of jobs of several nodes repeat, so their names are random.
std::string own_name(const std::string& job, const rendezvous::NodePlace& node) {
  if (node.is_only()) return job + kSuffix;
  return fmt::format("node-{}.{}{}", node.node, net::random_hex(16), kSuffix);
}

/// No other user may replace a file there, since `peal why` reads it later.
void make_own_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw system_error("cannot make " + folder.string(), errno);
  }
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) {
    throw system_error("cannot look at " + folder.string(), errno);
  }
  const bool is_ours = S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
  if (is_ours && (status.st_mode & 0077) == 0) return;
  throw Error(
      ErrorKind::kResource,
      fmt::format("{} is not a folder that only this user can reach; remove it", folder.string()));
}

/// Removes the oldest files. Every file in the folder is a dump, or an unfinished one.
void make_room(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> dumps;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code unknown;
    dumps.emplace_back(entry->last_write_time(unknown), entry->path());
  }
  std::ranges::sort(dumps);
  for (std::size_t i = 0; i + kDumpsKept <= dumps.size(); ++i) fs::remove(dumps[i].second, ignored);
}

}  // namespace

std::string place_for_dump(const std::string& log_directory,
                           const std::string& job,
                           const fs::path& parent,
                           const rendezvous::NodePlace& node) {
  if (!log_directory.empty()) return fs::path(log_directory) / name_among_logs(node);
  const fs::path folder = parent / fmt::format("peal-{}", ::geteuid());
  make_own_folder(folder);
  make_room(folder);
  return folder / own_name(job, node);
}

void remove_former_dump(const std::string& log_directory, const rendezvous::NodePlace& node) {
  if (log_directory.empty()) return;
  remove_own_file(fs::path(log_directory) / name_among_logs(node));
}

}  // namespace peal::launch
