// Makes text from outside, such as names of files and texts of ranks, safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace peal {

/// `text` with each byte of a control character (C0, DEL, C1) and each byte that is not UTF-8
/// escaped as \xNN. All other text stays unchanged. A second call changes nothing more.
std::string printable(std::string_view text);

/// The same for text with several lines: C0 and DEL become spaces.
std::string printable_line(std::string_view text);

/// Whether all of the text is UTF-8.
bool is_utf8(std::string_view text);

/// A wrong text in quotes, for errors. Shows only the first 60 bytes of a longer text.
std::string quoted_beginning(std::string_view text);

}  // namespace peal
