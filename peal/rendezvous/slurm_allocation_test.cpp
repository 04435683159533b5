#include "peal/rendezvous/slurm_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Variables = std::map<std::string, std::string>;

const Variables kScript = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_JOB_NODELIST", "n[1-3]"},
                           {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                           {"SLURM_JOB_CPUS_PER_NODE", "4(x3)"},
                           {"SLURM_NTASKS", "5"}};

TEST(SlurmAllocationTest, AScriptHasTheNodesOfItsJob) {
  const auto allocation = read_slurm_allocation(fixed_environment(kScript));
  ASSERT_TRUE(allocation);
  EXPECT_TRUE(allocation->has_tasks);
  EXPECT_THAT(
      allocation->nodes,
      ElementsAre(AllocatedNode{"n1", 2, 4}, AllocatedNode{"n2", 2, 4}, AllocatedNode{"n3", 1, 4}));
}

TEST(SlurmAllocationTest, AShellOfSallocHasThemToo) {
  Variables variables = kScript;
  variables["SLURM_STEP_ID"] = "4294967290";
  variables.erase("SLURM_NTASKS");
  const auto allocation = read_slurm_allocation(fixed_environment(variables));
  ASSERT_TRUE(allocation);
  EXPECT_EQ(allocation->nodes.size(), 3U);
  EXPECT_FALSE(allocation->has_tasks);
}

TEST(SlurmAllocationTest, AHeterogeneousJobHasTheNodesOfItsComponentsInTheirOrder) {
  Variables variables = kScript;
  variables["SLURM_JOB_NODELIST"] = "n1";
  variables["SLURM_HET_SIZE"] = "2";
  variables["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n9";
  variables["SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0"] = "8";
  variables["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n[2-3]";
  variables["SLURM_TASKS_PER_NODE_HET_GROUP_1"] = "1,4";
  const auto allocation = read_slurm_allocation(fixed_environment(variables));
  ASSERT_TRUE(allocation);
  EXPECT_THAT(allocation->nodes,
              ElementsAre(AllocatedNode{"n9", 1, 8, 0},
                          AllocatedNode{"n2", 1, 1, 1},
                          AllocatedNode{"n3", 4, 1, 1}));
  EXPECT_THAT(components_of(*allocation), ElementsAre(Pair("n2", 1), Pair("n3", 1), Pair("n9", 0)));
  EXPECT_TRUE(components_of(*read_slurm_allocation(fixed_environment(kScript))).empty());
}

TEST(SlurmAllocationTest, AShellOfSallocHasOnlyTheListsOfItsComponents) {
  const auto allocation =
      read_slurm_allocation(fixed_environment({{"SLURM_JOB_ID", "1"},
                                               {"SLURM_HET_SIZE", "2"},
                                               {"SLURM_JOB_NODELIST_HET_GROUP_0", "n1"},
                                               {"SLURM_JOB_NODELIST_HET_GROUP_1", "n2"},
                                               {"SLURM_NTASKS", "2"}}));
  ASSERT_TRUE(allocation);
  EXPECT_THAT(components_of(*allocation), ElementsAre(Pair("n1", 0), Pair("n2", 1)));
}

TEST(SlurmAllocationTest, ATaskOfSrunAndAnyOtherProcessHaveNone) {
  Variables variables = kScript;
  variables["SLURM_STEP_ID"] = "0";
  EXPECT_FALSE(read_slurm_allocation(fixed_environment(variables)));
  EXPECT_FALSE(read_slurm_allocation(fixed_environment({})));
}

}  // namespace
}  // namespace peal::rendezvous
