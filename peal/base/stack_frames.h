// The stack frames that LibTorch adds to the texts of its exceptions. Such frames hide the text
// from readers and fill up messages of limited size. Used where the text of a rank is stored or
// shown.
#pragma once

#include <string>
#include <string_view>

namespace peal {

/// Whether the line belongs to such a stack: "frame #3: ...", or the title "Exception raised from f
/// at file.cpp:7 (most recent call first):".
bool is_stack_frame(std::string_view line);

/// `text` without the lines of stacks. If a line is removed, the result ends without a newline.
std::string without_stack_frames(std::string_view text);

}  // namespace peal
