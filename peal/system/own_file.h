// Files in folders that other users may write to: records, logs, cached programs. Such a file
// counts only if it is a regular file of this user. Links are not followed.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/system/fd.h"
#include "peal/system/text_file.h"

namespace peal {

/// Creates a file that only this user may read and write, open for both. Removes an earlier regular
/// file of this user first. Does not touch anything else at `path`.
/// Errors: resource, which names the path.
Fd make_own_file(const std::string& path);

/// Writes all of `bytes`. Errors: resource, which names the path.
void write_all(const Fd& file, std::string_view bytes, const std::string& path);

/// Opens a regular file of this user for reading. Does not follow a link at the end of the path,
/// and never blocks, as the open() of a pipe would.
/// Errors: usage, in the words of read_text_file: "cannot be read: it belongs to another user".
Fd open_own_file(const std::string& path);

/// The content of a regular file of this user. Errors: as open_own_file, and as read_text_file.
std::string read_own_file(const std::string& path, Bytes longest = kLongestText);

/// Removes the file if it is a regular file of this user. Ignores failures.
void remove_own_file(const std::string& path) noexcept;

}  // namespace peal
