#include "mnist/images.h"

#include <vector>

#include <torch/torch.h>

namespace mnist {
namespace {

/// A copy of the bytes.
torch::Tensor bytes(const std::vector<std::uint8_t>& values, torch::IntArrayRef shape) {
  torch::Tensor tensor = torch::empty(shape, torch::kUInt8);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::uint8_t>());
  return tensor;
}

}  // namespace

ImageDataset::ImageDataset(const LabelledImages& images, Normalisation normalisation) {
  const auto count = static_cast<std::int64_t>(images.count());
  const auto rows = static_cast<std::int64_t>(images.rows);
  const auto columns = static_cast<std::int64_t>(images.columns);
  images_ = bytes(images.pixels, {count, 1, rows, columns})
                .to(torch::kFloat32)
                .div_(255)
                .sub_(normalisation.mean)
                .div_(normalisation.deviation);
  labels_ = bytes(images.labels, {count}).to(torch::kInt64);
}

torch::data::Example<> ImageDataset::get_batch(c10::ArrayRef<std::size_t> indices) {
  const std::vector<std::int64_t> chosen(indices.begin(), indices.end());
  const torch::Tensor index = torch::tensor(chosen, torch::kInt64);
  return {images_.index_select(0, index), labels_.index_select(0, index)};
}

std::optional<std::size_t> ImageDataset::size() const {
  return static_cast<std::size_t>(labels_.size(0));
}

}  // namespace mnist
