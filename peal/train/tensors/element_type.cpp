#include "peal/train/tensors/element_type.h"

#include "peal/base/error.h"

namespace peal::train {

DType element_type(at::ScalarType type) {
  if (const auto dtype = try_element_type(type)) return *dtype;
  throw Error(ErrorKind::kUnsupported,
              c10::str("tensors of type ",
                       type,
                       " cannot be communicated: convert them to a supported type with .to(...)"));
}

at::ScalarType scalar_type(DType dtype) {
  for (const auto& [same, type] : kElementTypes) {
    if (same == dtype) return type;
  }
  return at::ScalarType::Undefined;
}

}  // namespace peal::train
