#include "peal/train/ddp/model_agreement.h"

#include <torch/torch.h>

#include "peal/train/tensors/agreement.h"
#include "peal/train/tensors/staged.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {

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
  for (const NamedTensor& item : model.parameters()) {
    Staged(*item, Staged::Use::kRead);  // throws on every rank if the tensor cannot be communicated
  }
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
