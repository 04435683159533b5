// The error of a file that cannot be read. Used by what reads files.
#pragma once

#include <string>

#include "peal/base/error.h"

namespace peal {

/// usage: "cannot be read: <why>". Whoever knows the file's name puts it before.
inline Error unreadable(const std::string& why) {
  return Error(ErrorKind::kUsage, "cannot be read: " + why);
}

}  // namespace peal
