#include "peal/system/cgroups.h"

#include <fstream>
#include <string>

namespace peal {
namespace {

using Path = std::filesystem::path;

/// The mount point of the controller, if a line of /proc/self/cgroup with `controllers` applies to
/// it.
std::optional<Path> mount_for(const std::string& controllers, std::string_view controller) {
  if (controllers.empty()) return "sys/fs/cgroup";  // v2
  const std::string wanted = "," + std::string(controller) + ",";
  const bool is_among_them = ("," + controllers + ",").find(wanted) != std::string::npos;
  return is_among_them ? std::optional(Path("sys/fs/cgroup") / controller) : std::nullopt;
}

}  // namespace

std::vector<Path> cgroups_of(std::string_view controller, const Path& root) {
  std::vector<Path> folders;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto mount = mount_for(line.substr(first + 1, second - first - 1), controller);
    if (!mount) continue;
    // In a container the path may be the host's, and only the last folders on the way up may exist.
    for (Path group = Path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      folders.push_back(root / *mount / group);
      if (group.empty()) break;
    }
  }
  return folders;
}

std::optional<std::int64_t> number_in(const Path& file) {
  std::int64_t number = 0;
  if (std::ifstream(file) >> number) return number;
  return std::nullopt;
}

std::optional<std::int64_t> number_after(std::string_view word, const Path& file) {
  std::ifstream words(file);
  std::int64_t number = 0;
  for (std::string each; words >> each;) {
    if (each == word && words >> number) return number;
  }
  return std::nullopt;
}

}  // namespace peal
