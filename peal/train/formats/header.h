// The header of a safetensors file: which tensors the file has, and where. Without LibTorch, so
// that it can be fuzzed. Used by the checkpoints.
//
// A file is: the size of the JSON text (8 bytes, little-endian), the JSON text, the data.
// Source: https://huggingface.co/docs/safetensors; the limits are those of the reference.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::train {

/// Values of `metadata` are text; tensors are by name.
struct SafetensorsHeader {
  struct Tensor {
    std::string dtype;  // "F32"
    std::vector<std::int64_t> shape;
    Bytes begin = {};  // in the data
    Bytes end = {};

    friend bool operator==(const Tensor&, const Tensor&) = default;
  };

  std::map<std::string, std::string> metadata = {};
  std::map<std::string, Tensor> tensors = {};

  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// The size of the number before the JSON text.
inline constexpr Bytes kSafetensorsPrefix = 8_B;

/// The size of an element of this type of the format; nothing for unknown types, and for types
/// of less than a byte.
std::optional<Bytes> safetensors_element_size(std::string_view dtype);

/// The size of the JSON text of a file that begins with `prefix` and has `file_size` bytes.
/// Errors: mismatch (a file too short for the prefix, a text beyond the end of the file or of more
///   than 100 MB).
Bytes safetensors_text_size(std::string_view prefix, Bytes file_size);

/// Parses the JSON text of a file with `data_size` bytes of data.
/// Errors: mismatch, which names the tensor: not the expected JSON, a name twice, an unknown type,
///   a tensor whose bytes do not match its type and shape, data that belongs to no tensor or to
///   several. The caller adds the name of the file.
/// Cost: memory of up to 20 times the text, for hostile texts.
SafetensorsHeader parse_safetensors_header(std::string_view text, Bytes data_size);

/// Assigns the bytes of the data to the tensors: larger elements first, so that each tensor is
/// aligned to its elements, and then by name. Returns the size of the data.
/// Errors: unsupported (a type without a size), usage (a negative or too large shape).
Bytes place_tensors(SafetensorsHeader& header);

/// The prefix and the JSON text. Spaces at the end align the data to 8 bytes.
/// Errors: usage (a name that is not UTF-8, or is "__metadata__"), unsupported (a text of more than
///   100 MB).
std::string print_safetensors_header(const SafetensorsHeader& header);

}  // namespace peal::train
