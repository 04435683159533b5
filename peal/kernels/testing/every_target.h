// Runs a test of the kernels on every instruction set of this CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace peal::kernels {

/// A test on one instruction set, named by GetParam().
class EveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

/// The parameters: the instruction sets that are compiled in and run here, including scalar loops.
inline std::vector<std::int64_t> targets_of_this_cpu() {
  return hwy::SupportedAndGeneratedTargets();
}

inline std::string target_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace peal::kernels
