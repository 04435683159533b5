// JSON writes characters beyond U+FFFF as two escapes, which the parser of YAML rejects.
#pragma once

#include <string>
#include <string_view>

namespace peal::launch {

/// A JSON text with each pair of surrogates (\uD83D\uDE00) as one escape of YAML (\U0001F600).
/// Other texts, which do not begin with { or [, stay as they are.
std::string join_surrogates(std::string_view text);

}  // namespace peal::launch
