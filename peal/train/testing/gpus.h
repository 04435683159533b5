// For tests that need a GPU.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace peal::train::testing {

inline constexpr const char* kNoGpu = "this machine has no GPU, or LibTorch was built without CUDA";

/// Its tests are skipped on a machine without a GPU.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << kNoGpu;
  }
};

inline const torch::Device kGpu{torch::kCUDA, 0};

}  // namespace peal::train::testing
