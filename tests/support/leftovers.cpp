#include "tests/support/leftovers.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <sstream>
#include <string_view>

namespace peal::testing {
namespace {

using Numbers = std::set<std::uint64_t>;

constexpr std::string_view kMemory = "/memfd:";
constexpr std::string_view kSocket = "socket:[";

std::optional<std::uint64_t> number_at(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// A process may end while this code reads its folder; unreadable content counts as absent. (An
/// std::istreambuf_iterator throws if the process is gone; << does not.)
std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Calls `look(entry)` for each entry of the folder, as long as the folder can be read.
template <class Look>
void each_in(const std::filesystem::path& folder, Look look) {
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    look(entry->path());
  }
}

void add_open(const std::filesystem::path& process, Leftovers& all) {
  each_in(process / "fd", [&](const std::filesystem::path& descriptor) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(descriptor, gone).string();
    struct stat file {};
    if (target.starts_with(kSocket)) {
      if (const auto inode = number_at(target.substr(kSocket.size()))) all.sockets.insert(*inode);
    } else if (target.starts_with(kMemory) && ::stat(descriptor.c_str(), &file) == 0) {
      all.memory.insert(file.st_ino);
    }
  });
}

void add_mapped(const std::filesystem::path& process, Leftovers& all) {
  std::istringstream maps(content(process / "maps"));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, path;
    std::uint64_t inode = 0;
    words >> range >> rights >> offset >> device >> inode >> path;
    if (path.starts_with(kMemory)) all.memory.insert(inode);
  }
}

/// The leftovers of all processes on this machine for which `is_meant(folder in /proc)`.
template <class IsMeant>
Leftovers leftovers(IsMeant is_meant) {
  Leftovers all;
  each_in("/proc", [&](const std::filesystem::path& process) {
    const auto pid = number_at(process.filename().string());
    if (!pid || !is_meant(process)) return;
    all.processes.insert(static_cast<pid_t>(*pid));
    add_open(process, all);
    add_mapped(process, all);
  });
  return all;
}

/// The inodes of all sockets of the kernel, also of sockets that no process has open.
Numbers open_sockets() {
  Numbers inodes;
  for (const auto& [table, column] : {std::pair("unix", 6), {"tcp", 9}, {"tcp6", 9}}) {
    std::istringstream lines(content(std::filesystem::path("/proc/net") / table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      for (int i = 0; i <= column; ++i) words >> word;
      if (const auto inode = number_at(word)) inodes.insert(*inode);
    }
  }
  return inodes;
}

Numbers common(const Numbers& a, const Numbers& b) {
  Numbers both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.begin()));
  return both;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Leftovers& all) {
  for (const pid_t pid : all.processes) out << "process " << pid << "  ";
  for (const auto inode : all.sockets) out << "socket " << inode << "  ";
  for (const auto inode : all.memory) out << "memory " << inode << "  ";
  return out;
}

Leftovers belongings_of(const std::string& mark) {
  return leftovers([&](const std::filesystem::path& process) {
    const std::string variables = '\0' + content(process / "environ");
    return variables.find('\0' + mark + '\0') != std::string::npos;
  });
}

Leftovers left_of(const Leftovers& before, const std::string& mark) {
  const Leftovers everything = leftovers([](const auto&) { return true; });
  Leftovers left = belongings_of(mark);
  left.sockets.merge(common(before.sockets, open_sockets()));
  left.memory.merge(common(before.memory, everything.memory));
  return left;
}

}  // namespace peal::testing
