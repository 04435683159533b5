// Text of others, such as names of files and words that ranks recorded, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace peal {

/// `text` with each byte of a control character (C0, DEL, C1), or of anything that is not UTF-8, as
/// \xNN. The rest stays as it is, so what this returned once stays as it is too.
std::string printable(std::string_view text);

/// The same for text that may have several lines: C0 and DEL become spaces.
std::string printable_line(std::string_view text);

}  // namespace peal
