#include "peal/launch/process_tree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "peal/base/parse_number.h"

namespace peal::launch {
namespace {

/// Parses "4711 (name) S 1 ...". The name may contain anything, so the last parenthesis counts.
/// Source: proc(5).
std::optional<pid_t> read_parent(const std::filesystem::path& stat_path) {
  std::ifstream file(stat_path);
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos || text.size() < name_end + 5) return std::nullopt;
  const auto begin = name_end + 4;
  return try_parse_number<pid_t>(text.substr(begin, text.find(' ', begin) - begin));
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto pid = try_parse_number<pid_t>(entry->path().filename().string());
    if (!pid) continue;
    if (const auto parent = read_parent(entry->path() / "stat")) children.emplace(*parent, *pid);
  }
  return children;
}

}  // namespace

OrphanAdoption::OrphanAdoption() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

OrphanAdoption::~OrphanAdoption() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }

namespace {

/// Without `spared` and their descendants.
std::vector<pid_t> descendants_but(pid_t root, const std::set<pid_t>& spared) {
  const auto children = children_by_parent();
  std::vector<pid_t> found;
  const auto add_children_of = [&](pid_t parent) {
    for (auto [child, end] = children.equal_range(parent); child != end; ++child) {
      if (!spared.contains(child->second)) found.push_back(child->second);
    }
  };
  add_children_of(root);
  for (std::size_t i = 0; i < found.size(); ++i) add_children_of(found[i]);
  return found;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root) { return descendants_but(root, {}); }

int kill_descendants(Deadline deadline, const std::set<pid_t>& spared) {
  while (true) {
    const std::vector<pid_t> left = descendants_but(::getpid(), spared);
    if (left.empty() || deadline.passed()) return static_cast<int>(left.size());
    for (const pid_t pid : left) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);  // fails for processes that are not children
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace peal::launch
