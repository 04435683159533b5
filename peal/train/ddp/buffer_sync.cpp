#include "peal/train/ddp/buffer_sync.h"

#include <torch/torch.h>

#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {

void sync_buffers(ProcessGroup& group,
                  const ModelTensors& model,
                  BufferSync how,
                  BufferSources sources,
                  Timeout timeout) {
  if (how == BufferSync::kNone || group.size() == 1) return;
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> data;
  for (const NamedTensor& buffer : distinct(model.buffers())) {
    data.push_back(buffer->variable_data());  // has a version counter of its own
  }
  for (const Tensors& same_type : by_type(data)) {
    if (how == BufferSync::kBroadcast || !same_type.front().is_floating_point()) {
      broadcast(group, same_type, sources.first, {.timeout = timeout});
      continue;
    }
    for (const Tensor& buffer : same_type) {
      if (!sources.is_one) buffer.zero_();
    }
    all_reduce(group, same_type, {.timeout = timeout});
    for (const Tensor& buffer : same_type) buffer.div_(sources.count);
  }
}

}  // namespace peal::train
