// A file that others may read at any moment: it is there as a whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace peal::observe {

/// For this user alone; it replaces a former one. Errors: resource.
void write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace peal::observe
