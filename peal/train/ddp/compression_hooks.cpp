#include "peal/train/ddp/compression_hooks.h"

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/finishing_work.h"
#include "peal/train/tensors/tensors.h"

namespace peal::train {

CastHook::CastHook(torch::ScalarType type) : type_(type) {
  if (type == torch::kHalf || type == torch::kBFloat16) return;
  throw Error(
      ErrorKind::kUsage,
      c10::str(
          "CastHook cannot send gradients as ", type, ": use torch::kHalf or torch::kBFloat16"));
}

WorkPtr CastHook::start(ProcessGroup& group, const GradientsToAverage& bucket, Timeout timeout) {
  const torch::NoGradGuard no_grad;
  if (compressed_.size() <= bucket.index) compressed_.resize(bucket.index + 1);
  Tensor& small = compressed_[bucket.index];
  if (!small.defined() || small.numel() != bucket.flat.numel()) {
    small = allocate_tensor(group, {bucket.flat.numel()}, type_);
  }
  small.copy_(bucket.flat);
  WorkPtr work =
      group.all_reduce_async(buffer_of(small), {.op = ReduceOp::kAvg, .timeout = timeout});
  return finish_with(std::move(work), [small, flat = bucket.flat] {
    const torch::NoGradGuard no_history;
    flat.copy_(small);
  });
}

}  // namespace peal::train
