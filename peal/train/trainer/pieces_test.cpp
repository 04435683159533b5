// The parts of a Trainer that need no model.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/testing/gpus.h"
#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/devices.h"
#include "peal/train/trainer/learning_rates.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::thrown_text;

TEST(DevicesTest, AGpuThatIsNotThereIsAnErrorThatCountsThoseThatAre) {
  const auto present = static_cast<int>(torch::cuda::device_count());
  const std::vector<int> wanted = {present + 3};
  EXPECT_THAT(
      thrown_text([&] { choose_devices(wanted); }),
      ::testing::AllOf(HasSubstr("GPU " + std::to_string(present + 3) + " is not available"),
                       HasSubstr("has " + std::to_string(present) + " GPU")));
  EXPECT_THAT(thrown_text([] { choose_devices(std::vector<int>{-1}); }), HasSubstr("GPU -1"));
}

TEST(DevicesTest, WithoutNumbersAMachineWithoutGpusUsesTheCpu) {
  if (torch::cuda::device_count() > 0) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_THAT(choose_devices(), ::testing::ElementsAre(torch::Device(torch::kCPU)));
}

class DevicesOnGpusTest : public testing::GpuTest {};

TEST_F(DevicesOnGpusTest, NumbersChooseGpusAndWithoutNumbersAllAreChosen) {
  EXPECT_THAT(choose_devices(std::vector<int>{0}), ::testing::ElementsAre(testing::kGpu));
  EXPECT_THAT(choose_devices(std::vector<int>{0, 0}),
              ::testing::ElementsAre(testing::kGpu, testing::kGpu));
  const std::vector<torch::Device> all = choose_devices();
  EXPECT_EQ(all.size(), static_cast<std::size_t>(torch::cuda::device_count()));
  EXPECT_EQ(all.front(), testing::kGpu);
}

TEST(DevicesTest, EachLocalRankHasItsGpuAndAllShareTheCpu) {
  const std::vector<torch::Device> gpus = {torch::Device(torch::kCUDA, 1),
                                           torch::Device(torch::kCUDA, 4)};
  EXPECT_EQ(device_of(1, gpus), torch::Device(torch::kCUDA, 4));
  EXPECT_THAT(thrown_text([&] { device_of(2, gpus); }), HasSubstr("local rank 2 has no GPU"));
  const std::vector<torch::Device> cpu = {torch::Device(torch::kCPU)};
  EXPECT_EQ(device_of(7, cpu), torch::Device(torch::kCPU));
}

TEST(LearningRatesTest, ACosineRisesInTheWarmUpAndFallsToItsLastValue) {
  const LearningRateFactor factor = cosine_factor(14, 4, 0.1);
  EXPECT_DOUBLE_EQ(factor(0), 0.25);
  EXPECT_DOUBLE_EQ(factor(3), 1);
  EXPECT_DOUBLE_EQ(factor(4), 1);
  EXPECT_DOUBLE_EQ(factor(9), 0.55);
  EXPECT_DOUBLE_EQ(factor(14), 0.1);
  EXPECT_DOUBLE_EQ(factor(100), 0.1);
  EXPECT_THAT(thrown_text([] { cosine_factor(4, 4); }), HasSubstr("more steps than warm-up"));
}

TEST(LearningRatesTest, StepsMultiplyTheRateAgainAndAgain) {
  const LearningRateFactor factor = step_factor(3, 0.5);
  EXPECT_EQ(factor(2), 1);
  EXPECT_EQ(factor(3), 0.5);
  EXPECT_EQ(factor(8), 0.25);
}

}  // namespace
}  // namespace peal::train
