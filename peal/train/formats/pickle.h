// The tensors of a file that Python's torch.save has written: where they are, by name. Reads the
// pickle as data: it calls nothing and makes no object, unlike Python. Without LibTorch, so that it
// can be fuzzed. Used by train/checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace peal::train {

/// A view of a storage, which is another part of the file.
struct PickledTensor {
  std::string name = {};     // the keys on the way to it: "model.conv.weight"
  std::string storage = {};  // the key of the storage
  std::string type = {};     // a class of storages, "FloatStorage", or an element type, "uint16"
  std::int64_t offset = 0;   // in elements
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};

  friend bool operator==(const PickledTensor&, const PickledTensor&) = default;
};

/// The tensors in the dicts, OrderedDicts, lists and tuples of a pickle, in their order. Names join
/// keys with a dot; an element of a list has its index as key. A single tensor has the name "".
/// Leaves out all other values, such as numbers, and what is inside of other objects.
/// Errors: mismatch (not such a pickle, a tensor that is not well-formed, a name twice, more values
///   or longer names than a model has).
std::vector<PickledTensor> parse_pickled_tensors(std::string_view pickle);

/// The number of elements that the storage must have for the tensor; nothing beyond 2^63.
std::optional<std::int64_t> elements_needed(const PickledTensor& tensor);

}  // namespace peal::train
