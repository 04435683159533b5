#include "peal/bench/folder.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::bench {
namespace {

constexpr const char* kPrefix = "peal-bench.";

/// A zombie has ended: whoever started it has only not asked for its exit code yet.
/// Source: proc(5); the name in parentheses may hold anything, so the last one counts.
bool is_zombie(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text.substr(name_end + 2).starts_with('Z');
}

std::filesystem::path folder_of_the_system() {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  return unknown ? "/tmp" : folder;
}

}  // namespace

void remove_folders_of_the_dead(const std::filesystem::path& parent) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(parent, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code not_ours;
    if (is_left_by_the_dead(entry->path().filename(), kPrefix)) {
      std::filesystem::remove_all(entry->path(), not_ours);
    }
  }
}

bool is_left_by_the_dead(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  pid_t pid = 0;
  const auto [end, error] =
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
  if (error != std::errc() || pid <= 0) return false;
  const bool is_gone = ::kill(pid, 0) != 0 && errno == ESRCH;
  return is_gone || is_zombie(pid);
}

Folder::Folder() : Folder(folder_of_the_system()) {}

Folder::Folder(const std::filesystem::path& parent) {
  remove_folders_of_the_dead(parent);
  std::string name = parent / fmt::format("{}{}.XXXXXX", kPrefix, ::getpid());
  if (::mkdtemp(name.data()) == nullptr) throw system_error("cannot make " + name, errno);
  path_ = name;
}

Folder::~Folder() {
  std::error_code left;
  std::filesystem::remove_all(path_, left);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream stream(file);
  stream << text;
  stream.close();
  if (!stream) throw system_error("cannot write " + file.string(), errno);
  return file;
}

}  // namespace peal::bench
