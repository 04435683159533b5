#include "mnist/images.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace mnist {
namespace {

TEST(ImageDatasetTest, ABatchHoldsTheChosenPicturesNormalised) {
  LabelledImages images;
  images.rows = 1;
  images.columns = 2;
  images.pixels = {0, 255, 51, 102, 255, 255};
  images.labels = {3, 1, 4};
  ImageDataset dataset(images, {.mean = 0.5, .deviation = 0.5});
  EXPECT_EQ(dataset.size(), 3u);
  const std::vector<std::size_t> indices = {2, 0};
  const torch::data::Example<> batch = dataset.get_batch(indices);
  EXPECT_TRUE(batch.data.allclose(torch::tensor({{{{1.0f, 1.0f}}}, {{{-1.0f, 1.0f}}}})));
  EXPECT_TRUE(batch.target.equal(torch::tensor({4, 3}, torch::kInt64)));
  EXPECT_EQ(dataset.images().sizes(), (torch::IntArrayRef{3, 1, 1, 2}));
}

}  // namespace
}  // namespace mnist
