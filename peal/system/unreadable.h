// The error of a file that cannot be read.
#pragma once

#include <string>

#include "peal/base/error.h"

namespace peal {

/// An Error(usage) that says "cannot be read: <why>". The text does not name the file: the caller
/// adds the name.
inline Error unreadable(const std::string& why) {
  return Error(ErrorKind::kUsage, "cannot be read: " + why);
}

}  // namespace peal
