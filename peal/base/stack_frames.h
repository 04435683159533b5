// The stack frames that LibTorch adds to the texts of its exceptions. Such frames hide the text
// from readers and fill up messages of limited size. Used where the text of a rank is stored or
// shown.
#pragma once

#include <string>
#include <string_view>

namespace peal {

/// Finds the lines of such stacks in a text. A stack is the title "Exception raised from f at
/// file.cpp:7 (most recent call first):" and the lines "frame #3: ..." directly below. Elsewhere, a
/// line that begins with "frame #" is the program's own.
class StackFrameFilter final {
 public:
  /// Whether the next line of the text, without its newline, belongs to a stack.
  bool drops(std::string_view line);

 private:
  bool in_stack_ = false;
};

/// `text` without the lines of stacks. If a line is removed, the result ends without a newline.
std::string without_stack_frames(std::string_view text);

}  // namespace peal
