// Reads text files that a user names: secrets, rows of choices, results of an earlier run. Returns
// a text or an error for any kind of file.
#pragma once

#include <string>

#include "peal/base/units.h"
#include "peal/system/fd.h"

namespace peal {

/// The default limit; no text that peal reads is longer.
inline constexpr Bytes kLongestText = 64_MiB;

/// The content of the file; "" if it is empty. A pipe with a writer is read to its end. Memory
/// keeps no copy of the text but the result, since the text may be a secret.
/// Errors: usage, if the file is missing, is not readable, or has more than `longest` bytes. The
///   text says why ("cannot be read: Is a directory"), and the caller adds the name.
std::string read_text_file(const std::string& path, Bytes longest = kLongestText);

/// The rest of an open file. Errors: usage, as read_text_file.
std::string read_text(const Fd& file, Bytes longest = kLongestText);

}  // namespace peal
