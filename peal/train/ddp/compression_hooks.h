// Communication hooks that send gradients in a smaller type.
#pragma once

#include <memory>
#include <vector>

#include <torch/types.h>

#include "peal/train/ddp/communication_hook.h"

namespace peal::train {

/// Sends gradients as float16 or bfloat16:
///   g = (cast(g_0) + cast(g_1) + ...) / n, cast back to the type of g
/// The sum is scaled before it is added, so the mean of finite values is finite. float16 cannot
/// hold values above 65504; they become infinite. bfloat16 has the range of float32, and 8 bits of
/// precision.
/// Cost: half of the bytes of float32 on the wire. Two more passes over the gradients in memory, so
///   between ranks of one host it is slower than all_reduce. One more copy of the gradients in the
///   smaller type.
/// Source: fp16_compress_hook and bf16_compress_hook of torch.distributed.
class CastHook final : public CommunicationHook {
 public:
  /// Errors: usage (a type other than kHalf and kBFloat16).
  explicit CastHook(torch::ScalarType type);

  WorkPtr start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) override;

 private:
  torch::ScalarType type_;
  std::vector<torch::Tensor> compressed_;  // by bucket, in memory of the group
};

}  // namespace peal::train
