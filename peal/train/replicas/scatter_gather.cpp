#include "peal/train/replicas/scatter_gather.h"

#include <algorithm>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

/// The CPU waits for the values. A GPU does not, because its stream orders the copy before their
/// use.
torch::Tensor copied_to(const torch::Tensor& tensor, const torch::Device& device) {
  return tensor.to(device, /*non_blocking=*/!device.is_cpu());
}

}  // namespace

Split split_evenly(std::int64_t samples, std::int64_t dim, std::vector<torch::Device> devices) {
  const auto most = static_cast<std::int64_t>(devices.size());
  const std::int64_t parts = std::clamp(samples, std::int64_t{1}, most);
  Split split{.dim = dim, .devices = std::move(devices)};
  for (std::int64_t part = 0; part < parts; ++part) {
    split.sizes.push_back(samples / parts + (part < samples % parts ? 1 : 0));
  }
  return split;
}

void SampleCount::add(const torch::Tensor& tensor) {
  if (!tensor.defined()) return;
  if (tensor.dim() == 0 || dim_ >= tensor.dim() || dim_ < -tensor.dim()) {
    throw Error(ErrorKind::kUsage,
                c10::str("DataParallel splits its tensors along dimension ",
                         dim_,
                         ", which a tensor of shape ",
                         tensor.sizes(),
                         " does not have. Pass a value for all replicas as another type"));
  }
  const std::int64_t size = tensor.size(dim_);
  if (count_ && *count_ != size) {
    throw Error(ErrorKind::kUsage,
                c10::str("DataParallel: the tensors have different numbers of samples along "
                         "dimension ",
                         dim_,
                         ", ",
                         *count_,
                         " and ",
                         size,
                         ". Pass tensors of the same samples"));
  }
  count_ = size;
}

void SampleCount::add(const std::optional<torch::Tensor>& tensor) {
  if (tensor) add(*tensor);
}

void SampleCount::add(const std::vector<torch::Tensor>& tensors) {
  for (const torch::Tensor& tensor : tensors) add(tensor);
}

std::int64_t SampleCount::count() const {
  if (count_) return *count_;
  throw Error(ErrorKind::kUsage, "DataParallel has no argument to split: pass at least one tensor");
}

std::vector<torch::Tensor> scatter(const torch::Tensor& tensor, const Split& split) {
  if (!tensor.defined()) return std::vector<torch::Tensor>(split.count());
  // Such views must not be changed in place if they need a gradient: autograd reports it. The
  // replicas would otherwise change the graph of one tensor at the same time.
  std::vector<torch::Tensor> parts = tensor.split_with_sizes(split.sizes, split.dim);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = copied_to(parts[i], split.devices[i]);
  }
  return parts;
}

std::vector<std::optional<torch::Tensor>> scatter(const std::optional<torch::Tensor>& tensor,
                                                  const Split& split) {
  if (!tensor) return std::vector<std::optional<torch::Tensor>>(split.count());
  const std::vector<torch::Tensor> parts = scatter(*tensor, split);
  return {parts.begin(), parts.end()};
}

std::vector<std::vector<torch::Tensor>> scatter(const std::vector<torch::Tensor>& tensors,
                                                const Split& split) {
  std::vector<std::vector<torch::Tensor>> parts(split.count());
  for (const torch::Tensor& tensor : tensors) {
    const std::vector<torch::Tensor> of_tensor = scatter(tensor, split);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].push_back(of_tensor[i]);
  }
  return parts;
}

torch::Tensor gather(const std::vector<torch::Tensor>& parts,
                     std::int64_t dim,
                     const torch::Device& device) {
  if (!parts[0].defined()) return {};
  std::vector<torch::Tensor> here;
  for (const torch::Tensor& part : parts) here.push_back(copied_to(part, device));
  return here[0].dim() == 0 ? torch::stack(here) : torch::cat(here, dim);
}

}  // namespace peal::train
