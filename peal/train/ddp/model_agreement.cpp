#include "peal/train/ddp/model_agreement.h"

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/staged.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

void require_one_device(const ModelTensors& model) {
  const std::vector<NamedTensor> parameters = model.parameters();
  for (const NamedTensor& item : parameters) {
    const NamedTensor& first = parameters.front();
    if (item->device() == first->device()) continue;
    throw Error(ErrorKind::kUnsupported,
                c10::str(first.key(),
                         " is on ",
                         first->device(),
                         ", and ",
                         item.key(),
                         " on ",
                         item->device(),
                         ": the gradients of a module on several devices cannot be averaged. Move "
                         "the module to one device"));
  }
}

}  // namespace

void require_same_layout(ProcessGroup& group,
                         const ModelTensors& model,
                         const ModuleSnapshot& agreed,
                         Timeout timeout) {
  require_agreement(
      group,
      {.what = "parameters and buffers",
       .advice = "every rank must build the same model, and change it in the same way"},
      agreed.describe(model),
      timeout);
  // All ranks have the same parameters, so an error is thrown on every rank.
  for (const NamedTensor& item : model.parameters()) require_sendable(*item);
  require_one_device(model);
}

void require_same_values(ProcessGroup& group, const ModelTensors& model, Timeout timeout) {
  require_agreement(group,
                    {.what = "values in their parameters, after parameters were loaded or replaced",
                     .advice = "load the same values on every rank, or load them on one rank and "
                               "then call peal::train::broadcast_parameters on every rank"},
                    checksums(model),
                    timeout);
}

}  // namespace peal::train
