#include "peal/train/horovod/compression.h"

namespace peal::hvd {
namespace {

class Cast final : public Compressor {
 public:
  explicit Cast(torch::ScalarType type) : type_(type) {}

  Compressed compress(const torch::Tensor& tensor) const override {
    if (!tensor.is_floating_point()) return {tensor, {}};
    return {tensor.to(type_), static_cast<std::int64_t>(tensor.scalar_type())};
  }

  torch::Tensor decompress(const torch::Tensor& tensor, const c10::IValue& context) const override {
    if (context.isNone()) return tensor;
    return tensor.to(static_cast<torch::ScalarType>(context.toInt()));
  }

 private:
  torch::ScalarType type_;
};

}  // namespace

CompressorPtr Compression::fp16() { return std::make_shared<Cast>(torch::kHalf); }
CompressorPtr Compression::bf16() { return std::make_shared<Cast>(torch::kBFloat16); }

}  // namespace peal::hvd
