#include "peal/train/parameters.h"

#include <torch/torch.h>

#include "peal/train/tensors.h"
#include "peal/train/typed_lists.h"

namespace peal::train {

void broadcast_parameters(ProcessGroup& group,
                          const torch::nn::Module& module,
                          Rank root,
                          Timeout timeout) {
  Tensors all = distinct(module.parameters());
  for (const Tensor& buffer : distinct(module.buffers())) all.push_back(buffer);
  for (const Tensors& same_type : by_type(all)) broadcast(group, same_type, root, timeout);
}

void average_gradients(ProcessGroup& group, const torch::nn::Module& module, Timeout timeout) {
  Tensors gradients;
  for (const Tensor& parameter : distinct(module.parameters())) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  for (const Tensors& same_type : by_type(gradients)) {
    all_reduce(group, same_type, ReduceOp::kAvg, timeout);
  }
}

}  // namespace peal::train
