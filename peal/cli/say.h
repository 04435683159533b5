// What the program says on stderr.
#pragma once

#include <string_view>

namespace peal::cli {

/// What cannot be written there is lost: a log on a full disk is no reason to fail.
void say(std::string_view text);

}  // namespace peal::cli
