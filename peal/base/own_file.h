// Files in folders that other users may write to: records, logs, programs that are kept. Such a
// file counts only if it is a regular file of this user, and never leads elsewhere by a link.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/fd.h"
#include "peal/base/text_file.h"
#include "peal/base/units.h"

namespace peal {

/// Makes a file that only this user may read and write, open for both. A former regular file of
/// this user is removed first; anything else at `path` is left alone. Errors: resource, which names
/// the path.
Fd make_own_file(const std::string& path);

/// Writes all of `bytes`. Errors: resource, which names the path.
void write_all(const Fd& file, std::string_view bytes, const std::string& path);

/// Opens a regular file of this user for reading. Follows no link at the end of the path, and never
/// waits, as the open() of a pipe would.
/// Errors: usage, in the words of read_text_file: "cannot be read: it belongs to another user".
Fd open_own_file(const std::string& path);

/// All that a regular file of this user holds. Errors: as open_own_file; more than `longest`.
std::string read_own_file(const std::string& path, Bytes longest = kLongestText);

/// Removes the file if it is a regular file of this user. What cannot be removed stays.
void remove_own_file(const std::string& path) noexcept;

}  // namespace peal
