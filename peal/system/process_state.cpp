#include "peal/system/process_state.h"

#include <string.h>
#include <sys/wait.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "peal/base/parse_number.h"
#include "peal/base/split.h"

namespace peal {
namespace {

/// The text of /proc/PID/stat after the name: the letter of the state, a space, and the parent.
/// (The name is in brackets and may contain brackets.) Empty if the process has ended.
std::string after_name(std::istream& stat) {
  std::string text;
  std::getline(stat, text, '\0');
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

/// 0 if the process has no parent, or has ended.
std::int64_t parent_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string rest = after_name(file);
  std::int64_t parent = 0;
  if (rest.size() > 2) std::from_chars(rest.data() + 2, rest.data() + rest.size(), parent);
  return parent;
}

}  // namespace

bool is_ancestor(std::int64_t ancestor, std::int64_t pid) {
  constexpr int kDeepest = 1000;  // a limit, since processes start and end meanwhile
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
  if (rest.empty()) return ProcessState::kMissing;  // it ended meanwhile
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

std::optional<std::uint64_t> start_time_of_process(std::int64_t pid) {
  constexpr std::size_t kState = 0;       // the first word after the name
  constexpr std::size_t kStartTime = 19;  // field 22 of the file; the state is field 3
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string rest = after_name(file);
  const std::vector<std::string_view> words = split(rest, ' ');
  if (words.size() <= kStartTime || words[kState] == "Z" || words[kState] == "X") {
    return std::nullopt;
  }
  return try_parse_number<std::uint64_t>(words[kStartTime]);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe_wait_status(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was killed by {}", signal_name(WTERMSIG(status)));
}

}  // namespace peal
