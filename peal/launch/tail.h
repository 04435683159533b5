// The last lines that a rank wrote, for the report of its failure. LibTorch's stack frames are left
// out, because they would push out the text of the error above them.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/stack_frames.h"

namespace peal::launch {

class Tail final {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kLongestLine = 1000;

  void add(std::string_view line) {
    if (stack_frames_.drops(line)) return;
    if (lines_.size() == kLines) lines_.pop_front();
    lines_.emplace_back(line.substr(0, kLongestLine));
  }
  std::vector<std::string> lines() const { return {lines_.begin(), lines_.end()}; }

 private:
  StackFrameFilter stack_frames_;
  std::deque<std::string> lines_;
};

}  // namespace peal::launch
