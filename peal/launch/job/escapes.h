// Escapes in quotes that the parser of YAML reads wrongly. Called by document.cpp.
#pragma once

#include <string>
#include <string_view>

namespace peal::launch {

/// A JSON text with each pair of surrogates (\uD83D\uDE00) as one escape of YAML (\U0001F600).
/// Other texts, which do not begin with { or [, stay as they are.
std::string join_surrogates(std::string_view text);

/// Repairs a text from the parser, so that it is UTF-8: the parser makes a single byte of \N
/// (U+0085) and of \_ (U+00A0). All other bytes are right, because the file was UTF-8.
std::string with_whole_escapes(const std::string& text);

}  // namespace peal::launch
