#include "peal/launch/job/machine_types.h"

#include <gtest/gtest.h>

namespace peal::launch {
namespace {

constexpr Bytes kGb = 1024_MiB;

TEST(MachineTypesTest, NamesOfComputeEngineGiveCpusAndMemory) {
  EXPECT_EQ(machine_type("n1-standard-4"),
            (MachineType{.resources = {.cpus = 4, .memory = 15 * kGb}}));
  EXPECT_EQ(machine_type("n1-standard-1")->resources.memory, 3840_MiB);
  EXPECT_EQ(machine_type("n1-highmem-2")->resources.memory, 13 * kGb);
  EXPECT_EQ(machine_type("n1-highcpu-8")->resources.memory, 7372_MiB);  // 7.2 GB
  EXPECT_EQ(machine_type("e2-standard-8")->resources.memory, 32 * kGb);
  EXPECT_EQ(machine_type("n2-standard-16")->resources.memory, 64 * kGb);
}

TEST(MachineTypesTest, SomeMachinesHaveGpus) {
  EXPECT_EQ(machine_type("a2-highgpu-2g"),
            (MachineType{.resources = {.cpus = 24, .memory = 170 * kGb, .gpus = 2}}));
  EXPECT_EQ(machine_type("n1-standard-4")->resources.gpus, std::nullopt);
}

TEST(MachineTypesTest, OlderNamesStandForMachinesOfComputeEngine) {
  EXPECT_EQ(
      machine_type("standard"),
      (MachineType{.names = MachineNames::kLegacy, .resources = {.cpus = 4, .memory = 15 * kGb}}));
  EXPECT_EQ(machine_type("large_model")->resources, (Resources{.cpus = 8, .memory = 52 * kGb}));
  EXPECT_EQ(machine_type("complex_model_m_gpu")->resources,
            (Resources{.cpus = 16, .memory = 60 * kGb, .gpus = 4}));
  EXPECT_EQ(machine_type("standard_gpu")->resources.gpus, 1);
}

TEST(MachineTypesTest, TpusAreRecognised) {
  EXPECT_TRUE(machine_type("cloud_tpu")->is_tpu);
  EXPECT_TRUE(machine_type("ct5lp-hightpu-4t")->is_tpu);
}

TEST(MachineTypesTest, OtherNamesAreUnknown) {
  for (const char* const name :
       {"", "n1-standard-", "n1-standard-5", "n1-standard-04", "N1-STANDARD-4", "n1", "huge"}) {
    EXPECT_EQ(machine_type(name), std::nullopt) << name;
  }
  EXPECT_EQ(nearest_machine_type("n1-standrad-4"), "n1-standard-4");
  EXPECT_EQ(nearest_machine_type("complex_model_xl"), "complex_model_l");
  EXPECT_EQ(nearest_machine_type("zzzzzzzzzzzzz"), "");
}

}  // namespace
}  // namespace peal::launch
