// Tensors by name: the content of a file of tensors.
#pragma once

#include <map>
#include <string>

#include <torch/types.h>

namespace peal::train {

using TensorMap = std::map<std::string, torch::Tensor>;
using Metadata = std::map<std::string, std::string>;

}  // namespace peal::train
