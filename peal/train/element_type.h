// LibTorch's element types in peal's words. For the files of this folder that touch tensors'
// memory.
#pragma once

#include <torch/types.h>

#include "peal/base/dtype.h"

namespace peal::train {

/// Errors: unsupported (a type that collectives have no meaning for, as quantized and float8 ones).
DType element_type(torch::ScalarType type);

/// The inverse.
torch::ScalarType scalar_type(DType dtype);

}  // namespace peal::train
