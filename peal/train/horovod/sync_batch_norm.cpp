#include "peal/train/horovod/sync_batch_norm.h"

#include "peal/base/error.h"
#include "peal/train/horovod/context.h"

namespace peal::hvd {

train::SyncBatchNorm SyncBatchNorm(const torch::nn::BatchNormOptions& options,
                                   const ProcessSet& process_set) {
  train::SyncBatchNorm norm(options);
  norm->set_group_source([process_set] {
    const ProcessSetPtr set = current()->set(process_set.id());
    if (set->included()) return set->other_group();
    throw Error(ErrorKind::kUsage, "SyncBatchNorm: this rank is not in the process set");
  });
  return norm;
}

}  // namespace peal::hvd
