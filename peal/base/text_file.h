// Files that a user names and that hold text of a sensible size: secrets, rows of choices, results
// of a former run. Whatever the name leads to, the answer is a text or an error.
#pragma once

#include <string>

#include "peal/base/fd.h"
#include "peal/base/units.h"

namespace peal {

/// No text that peal reads is longer.
inline constexpr Bytes kLongestText = 64_MiB;

/// All that the file holds; "" where it is empty. A pipe that somebody writes is read to its end.
/// Errors: usage, that says why it cannot be read ("cannot be read: Is a directory") and leaves it
/// to the caller to name it: it is not there, is no file, may not be read, has more than `longest`.
/// The text may be a secret: memory holds no copy of it but the result.
std::string read_text_file(const std::string& path, Bytes longest = kLongestText);

/// The rest of an open file. Errors: usage, in the same words.
std::string read_text(const Fd& file, Bytes longest = kLongestText);

}  // namespace peal
