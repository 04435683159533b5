// Pictures and labels as tensors, and as a data set for torch::data::make_data_loader.
#pragma once

#include <cstddef>

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/types.h>

#include "peal/train/data/labelled_images.h"

namespace peal::train {

/// How grey values become inputs: (grey / 255 - mean) / deviation.
struct Normalisation {
  double mean = 0;
  double deviation = 1;
};

/// Of MNIST's training digits.
inline constexpr Normalisation kMnistNormalisation{0.1307, 0.3081};

/// A batch is one Example: data [n, 1, rows, columns] of f32 and target [n] of i64, stacked
/// already.
class ImageDataset final
    : public torch::data::datasets::BatchDataset<ImageDataset, torch::data::Example<>> {
 public:
  explicit ImageDataset(const data::LabelledImages& images,
                        Normalisation normalisation = kMnistNormalisation);

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override;
  std::optional<std::size_t> size() const override;

  /// All of it.
  const torch::Tensor& images() const { return images_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  torch::Tensor images_;
  torch::Tensor labels_;
};

}  // namespace peal::train
