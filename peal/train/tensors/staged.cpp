#include "peal/train/tensors/staged.h"

#include <exception>
#include <memory>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/finishing_work.h"

namespace peal::train {
namespace {

torch::Tensor dense(const torch::Tensor& tensor, Staged::Use use) {
  const torch::NoGradGuard no_grad;
  if (is_plain(tensor)) return tensor;
  const torch::Tensor copy =
      torch::empty_like(tensor, torch::TensorOptions(torch::kCPU), at::MemoryFormat::Contiguous);
  return use == Staged::Use::kWrite ? copy : copy.copy_(tensor);
}

/// The tensors of an operation. Waits for its end when they are released, because the operation
/// uses their memory until then.
struct InUse {
  InUse(StagedList tensors, WorkPtr operation)
      : list(std::move(tensors)), work(std::move(operation)) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() {
    try {
      work->wait();
    } catch (const std::exception&) {
      // The caller has released the Work, so no caller needs the error.
    }
  }

  StagedList list;
  WorkPtr work;
};

}  // namespace

void require_sendable(const torch::Tensor& tensor) {
  if (!tensor.defined()) {
    throw Error(ErrorKind::kUsage, "an undefined tensor cannot be communicated: give it a value");
  }
  if (tensor.is_meta()) {
    throw Error(ErrorKind::kUsage,
                "a tensor on the device meta has no values to communicate: build the module on "
                "another device");
  }
  if (tensor.layout() != torch::kStrided) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("a tensor of layout ",
                         tensor.layout(),
                         " cannot be communicated: make it dense with .to_dense() first"));
  }
  element_type(tensor.scalar_type());
}

Staged::Staged(torch::Tensor tensor, Use use) : tensor_(std::move(tensor)), use_(use) {
  require_sendable(tensor_);
  dense_ = dense(tensor_, use);
}

Buffer Staged::buffer() const {
  return {dense_.data_ptr(), Elements(dense_.numel()), element_type(dense_.scalar_type())};
}

void Staged::finish() const {
  if (use_ == Use::kRead) return;
  if (!dense_.is_same(tensor_)) {
    const torch::NoGradGuard no_grad;
    tensor_.copy_(dense_);
  } else if (!tensor_.is_inference()) {
    torch::autograd::impl::bump_version(tensor_);
  }
}

StagedList staged(const std::vector<torch::Tensor>& tensors, Staged::Use use) {
  StagedList list;
  list.reserve(tensors.size());
  for (const torch::Tensor& tensor : tensors) list.emplace_back(tensor, use);
  return list;
}

std::vector<Buffer> buffers(const StagedList& list) {
  std::vector<Buffer> all;
  all.reserve(list.size());
  for (const Staged& one : list) all.push_back(one.buffer());
  return all;
}

std::vector<ConstBuffer> const_buffers(const StagedList& list) {
  std::vector<ConstBuffer> all;
  all.reserve(list.size());
  for (const Staged& one : list) all.emplace_back(one.buffer());
  return all;
}

void finish(const StagedList& list) {
  for (const Staged& one : list) one.finish();
}

WorkPtr work_on(StagedList list, WorkPtr work) {
  const auto in_use = std::make_shared<const InUse>(std::move(list), work);
  return finish_with(std::move(work), [in_use] { finish(in_use->list); });
}

}  // namespace peal::train
