// Writes a file that others may read at any moment: the file is whole, or it does not exist.
#pragma once

#include <string>
#include <string_view>

namespace peal {

/// Readable by this user only. Replaces an earlier file.
/// Errors: resource.
void write_whole_file(const std::string& path, std::string_view bytes);

/// The same, but returns false and changes nothing if the file exists. This also holds on a shared
/// folder that does not show a new file of another host yet. Exception: on a file system without
/// hard links, a call may replace a file that another process writes at the same time.
/// Errors: resource.
bool write_first_whole_file(const std::string& path, std::string_view bytes);

}  // namespace peal
