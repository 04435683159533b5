#include "peal/base/process_state.h"

#include <cerrno>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace peal {

/// The state is the first letter after the name, which is in brackets and may hold brackets itself.
ProcessState state_of_process(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  if (!file) return errno == ENOENT ? ProcessState::kMissing : ProcessState::kUnknown;
  std::string text;
  std::getline(file, text, '\0');  // which throws nothing if the process ends meanwhile
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= text.size()) {
    return ProcessState::kMissing;  // it ended while it was looked at
  }
  switch (text[name_end + 2]) {
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
