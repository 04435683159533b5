// How a tensor travels between ranks: as it is, in 16 bits, or as a class of the user says. For
// training programs, by peal/horovod.h.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>

#include <torch/types.h>

namespace peal::hvd {

/// decompress(op over ranks of compress(tensor)) is the result of a compressed reduction.
/// Threads: any number at once.
class Compressor {
 public:
  Compressor() = default;
  virtual ~Compressor() = default;
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  struct Compressed {
    torch::Tensor tensor;
    c10::IValue context = {};  // for decompress
  };

  /// Does not change `tensor`. All ranks get the same type and shape from tensors of the same type
  /// and shape.
  virtual Compressed compress(const torch::Tensor& tensor) const = 0;
  /// `tensor`: the sent tensor after the reduction. `context`: from compress.
  virtual torch::Tensor decompress(const torch::Tensor& tensor,
                                   const c10::IValue& context) const = 0;
};

/// Null: no compression.
using CompressorPtr = std::shared_ptr<const Compressor>;

struct Compression {
  static CompressorPtr none() { return nullptr; }
  /// Sends floating tensors as float16 or bfloat16, and all others as they are. The result has the
  /// type of the tensor.
  static CompressorPtr fp16();
  static CompressorPtr bf16();
};

}  // namespace peal::hvd
