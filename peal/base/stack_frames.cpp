#include "peal/base/stack_frames.h"

#include <algorithm>

namespace peal {

bool StackFrameFilter::drops(std::string_view line) {
  const bool is_title =
      line.starts_with("Exception raised from ") && line.ends_with(" (most recent call first):");
  in_stack_ = is_title || (in_stack_ && line.starts_with("frame #"));
  return in_stack_;
}

std::string without_stack_frames(std::string_view text) {
  std::string kept;
  StackFrameFilter filter;
  bool has_frames = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(length);
    if (filter.drops(line.substr(0, line.find('\n')))) {
      has_frames = true;
    } else {
      kept += line;
    }
  }
  while (has_frames && kept.ends_with('\n')) kept.pop_back();
  return kept;
}

}  // namespace peal
