// A text as a JSON string. Used by the printers of this folder.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::train {

/// In quotes, and escaped. Errors: usage (not UTF-8).
inline std::string json_string(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::kUsage,
                quoted_beginning(text) + " is not UTF-8: safetensors files need names in UTF-8");
  }
}

}  // namespace peal::train
