// The JSON text of a safetensors header as a value. Used by header.cpp.
#pragma once

#include <string_view>

#include "peal/train/formats/header.h"

namespace peal::train {

/// The header as in the text: the types, shapes and bytes of the tensors are not checked.
/// Errors: mismatch (not the expected JSON, a name twice, a missing or unknown field, more than 64
///   dimensions).
SafetensorsHeader read_header_text(std::string_view text);

}  // namespace peal::train
