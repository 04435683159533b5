// The tensors of one operation as peal buffers: dense memory with an element type.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "peal/base/reduce_op.h"
#include "peal/group/buffer.h"

namespace peal::python {

/// The peal type that carries a tensor's elements: the same type, or bytes.
struct Carrier {
  DType dtype = DType::kU8;
  std::int64_t each = 1;  // carrier elements for each tensor element

  friend bool operator==(const Carrier&, const Carrier&) = default;
};

/// For operations that only move elements; any type. Cost: one or two comparisons.
Carrier carrier_of(at::ScalarType type);

/// For operations that reduce. Errors, with torch's text if torch has one: an op that has no
/// meaning for the type, a type that peal does not reduce.
ReduceOp reduce_op_of(const c10d::ReduceOp& op, at::ScalarType type);

/// How an operation uses a tensor.
enum class Use : unsigned char { kRead, kWrite, kReadWrite };

/// Whether an operation may work in the memory of a dense tensor, or must use a copy.
enum class Storage : unsigned char { kOwnMemory, kCopy };

/// Keeps a tensor alive. If the tensor is not dense or its place is kCopy, the operation works on a
/// dense copy, and `finish` copies the result back.
class TensorOperand {
 public:
  /// Errors: RuntimeError for a tensor that is not on the CPU or not strided.
  TensorOperand(at::Tensor tensor, Use use, Storage place = Storage::kOwnMemory);

  Buffer buffer() const { return buffer_; }
  const at::Tensor& tensor() const { return tensor_; }
  bool is_copied() const { return dense_.defined(); }
  /// Call after the operation has succeeded.
  void finish() const;

 private:
  at::Tensor tensor_;
  at::Tensor dense_;  // undefined if the operation works in the tensor's memory
  Use use_;
  Buffer buffer_;
};

/// The inputs and outputs of one operation. A tensor that changes in place is only in `out`.
struct TensorOperands {
  struct Copy {
    at::Tensor to;
    at::Tensor from;
  };

  std::vector<TensorOperand> in;
  std::vector<TensorOperand> out;
  std::vector<Copy> copies = {};  // copies of outputs, which `finish` makes

  std::vector<ConstBuffer> inputs() const;
  std::vector<Buffer> outputs() const;
  void finish() const;
};

std::vector<TensorOperand> operands(at::TensorList tensors, Use use);

/// For an operation in place. Tensors of the list that share memory, such as one tensor named
/// twice, each work on a copy. The copies are written back in the order of the list, as in gloo.
/// Cost: sorts the list by address, if it has more than one tensor.
TensorOperands in_place(at::TensorList tensors);

}  // namespace peal::python
