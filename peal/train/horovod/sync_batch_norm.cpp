#include "peal/train/horovod/sync_batch_norm.h"

#include "peal/base/error.h"
#include "peal/train/horovod/context.h"

namespace peal::hvd {

train::SyncBatchNorm SyncBatchNorm(const torch::nn::BatchNormOptions& options,
                                   const ProcessSet& process_set) {
  const ProcessSetPtr set = current()->set(process_set.id());
  if (!set->included()) {
    throw Error(ErrorKind::kUsage, "SyncBatchNorm: this rank is not in the process set");
  }
  return train::SyncBatchNorm(options, set->size() > 1 ? set->other_group() : nullptr);
}

}  // namespace peal::hvd
