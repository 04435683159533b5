// The config file of horovodrun, which is YAML. Called by `peal run`.
#pragma once

#include <string>

#include "peal/cli/horovod_settings.h"

namespace peal::cli {

/// Parses the sections controller, params, autotune, timeline, stall_check, library_options and
/// logging. Does not check the values.
/// Errors: usage, which names the line if the text is not YAML, or the place of a value that is a
///   list or a map.
HorovodConfig parse_horovod_config(const std::string& text);

/// The content of a file of at most 1 MiB. Errors: usage, which names the file.
HorovodConfig read_horovod_config(const std::string& path);

}  // namespace peal::cli
