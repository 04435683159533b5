#include "peal/base/process_state.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace peal {
namespace {

/// What /proc/PID/stat says after the name, which is in brackets and may hold brackets itself: the
/// letter of the state, a space, and the parent. Empty if the process ended meanwhile.
std::string after_name(std::istream& stat) {
  std::string text;
  std::getline(stat, text, '\0');
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

/// 0: it has none, or has ended.
std::int64_t parent_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string rest = after_name(file);
  std::int64_t parent = 0;
  if (rest.size() > 2) std::from_chars(rest.data() + 2, rest.data() + rest.size(), parent);
  return parent;
}

}  // namespace

bool is_ancestor(std::int64_t ancestor, std::int64_t pid) {
  constexpr int kDeepest = 1000;  // processes come and go while this looks
  for (int depth = 0; depth < kDeepest && pid > 0; ++depth) {
    pid = parent_of(pid);
    if (pid == ancestor && pid > 0) return true;
  }
  return false;
}

ProcessState state_of_process(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  if (!file) return errno == ENOENT ? ProcessState::kMissing : ProcessState::kUnknown;
  const std::string rest = after_name(file);
  if (rest.empty()) return ProcessState::kMissing;  // it ended while it was looked at
  switch (rest.front()) {
    case 'T':
    case 't':
      return ProcessState::kStopped;
    case 'Z':
    case 'X':
      return ProcessState::kZombie;
    default:
      return ProcessState::kRunning;
  }
}

}  // namespace peal
