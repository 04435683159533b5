// The tensors of one operation as peal sees them: dense memory with an element type.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "peal/base/reduce_op.h"
#include "peal/group/buffer.h"

namespace peal::python {

/// How the elements of a tensor travel: as elements of peal's types, or as the bytes that they are.
struct Carrier {
  DType dtype = DType::kU8;
  std::int64_t each = 1;  // of these for one of the tensor's

  friend bool operator==(const Carrier&, const Carrier&) = default;
};

/// For operations that move elements: any type. Cost: a comparison or two.
Carrier carrier_of(at::ScalarType type);

/// The same for those that reduce. Errors, in torch's words where it has some: an op that has no
/// meaning for the type, a type that peal does not reduce.
ReduceOp reduce_op_of(const c10d::ReduceOp& op, at::ScalarType type);

/// What an operation does with a tensor.
enum class Use : unsigned char { kRead, kWrite, kReadWrite };

/// Whether an operation may work in the memory of a tensor, if that is dense.
enum class Place : unsigned char { kOwnMemory, kCopy };

/// Keeps a tensor alive. Where the tensor is not dense or may not be worked on in place, the
/// operation works on a dense copy, and `finish` copies the result back.
class Operand {
 public:
  /// Errors: RuntimeError, for a tensor that is not on the CPU or not strided.
  Operand(at::Tensor tensor, Use use, Place place = Place::kOwnMemory);

  Buffer buffer() const { return buffer_; }
  const at::Tensor& tensor() const { return tensor_; }
  bool is_copied() const { return dense_.defined(); }
  /// When the operation has ended well.
  void finish() const;

 private:
  at::Tensor tensor_;
  at::Tensor dense_;  // undefined where the operation works in the tensor's own memory
  Use use_;
  Buffer buffer_;
};

/// The inputs and outputs of one operation. A tensor that is changed in place is in `out` alone.
struct Operands {
  struct Copy {
    at::Tensor to;
    at::Tensor from;
  };

  std::vector<Operand> in;
  std::vector<Operand> out;
  std::vector<Copy> copies = {};  // made by `finish`, of the outputs

  std::vector<ConstBuffer> inputs() const;
  std::vector<Buffer> outputs() const;
  void finish() const;
};

std::vector<Operand> operands(at::TensorList tensors, Use use);

/// For an operation in place. Tensors of the list that share memory, such as one tensor named
/// twice, each work on a copy. The copies are written back in the order of the list, as in gloo.
/// Cost: sorts the list by address, if it has more than one tensor.
Operands in_place(at::TensorList tensors);

}  // namespace peal::python
