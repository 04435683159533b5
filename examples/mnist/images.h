// Pictures and labels as tensors, and as a data set for torch::data::make_data_loader.
#pragma once

#include <cstddef>

#include <torch/data/datasets/base.h>
#include <torch/data/example.h>
#include <torch/types.h>

#include "mnist/labelled_images.h"

namespace mnist {

/// Normalises grey values to inputs: (grey / 255 - mean) / deviation.
struct Normalisation {
  double mean = 0;
  double deviation = 1;
};

/// Mean and deviation of MNIST's training digits.
inline constexpr Normalisation kMnistNormalisation{0.1307, 0.3081};

/// A batch is one stacked Example: data [n, 1, rows, columns] of f32 and target [n] of i64.
class ImageDataset final
    : public torch::data::datasets::BatchDataset<ImageDataset, torch::data::Example<>> {
 public:
  explicit ImageDataset(const LabelledImages& images,
                        Normalisation normalisation = kMnistNormalisation);

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override;
  std::optional<std::size_t> size() const override;

  /// The whole data set.
  const torch::Tensor& images() const { return images_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  torch::Tensor images_;
  torch::Tensor labels_;
};

}  // namespace mnist
