#include "peal/train/optim/registered_tensors.h"

#include <cstdint>

#include "peal/base/error.h"

namespace peal::train {

void RegisteredTensors::keep(const torch::Tensor& tensor) {
  if (!tensor.is_cpu() || !tensor.is_contiguous()) return;
  Entry& entry = entries_[tensor.unsafeGetTensorImpl()];
  void* const memory = tensor.data_ptr();
  if (entry.memory == memory && entry.bytes == tensor.nbytes()) return;
  entry.registration = {};
  // An alias, because the tensor itself may get other memory. Its storage must stay until the
  // registration ends.
  entry.tensor = tensor.detach();
  entry.memory = memory;
  entry.bytes = tensor.nbytes();
  try {
    entry.registration =
        group_->register_memory(memory, Bytes(static_cast<std::int64_t>(entry.bytes)));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage && error.kind() != ErrorKind::kUnsupported &&
        error.kind() != ErrorKind::kResource) {
      throw;
    }
  }
}

}  // namespace peal::train
