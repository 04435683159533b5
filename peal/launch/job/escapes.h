// Escapes in quotes that the parser of YAML does not read as it should. Called by document.cpp.
#pragma once

#include <string>
#include <string_view>

namespace peal::launch {

/// A JSON text with each pair of surrogates (\uD83D\uDE00) as one escape of YAML (\U0001F600).
/// Other texts, which do not begin with { or [, stay as they are.
std::string join_surrogates(std::string_view text);

/// A text as the parser gives it, in UTF-8: the parser makes one byte of \N (U+0085) and of \_
/// (U+00A0). The file was UTF-8, so that all other bytes are right.
std::string with_whole_escapes(const std::string& text);

}  // namespace peal::launch
