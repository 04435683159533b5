#include "peal/launch/slurm/slurm_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::slurm {
namespace {

using testing::ElementsAre;

TEST(SlurmCommands, AnErrorHasSlurmsSentenceAndWhatToDo) {
  EXPECT_EQ(
      explain("submit the job",
              "sbatch: error: invalid partition specified: nope\n"
              "sbatch: error: Batch job submission failed: Invalid partition name specified\n"),
      "could not submit the job: Slurm says: sbatch: error: invalid partition specified: "
      "nope; sbatch: error: Batch job submission failed: Invalid partition name specified "
      "(see `sinfo`, and engine_options.slurm in the file of the job)");
  EXPECT_EQ(explain("cancel the job", "scancel: error: something new\n"),
            "could not cancel the job: Slurm says: scancel: error: something new");
  EXPECT_EQ(explain("ask for the job", ""), "could not ask for the job: Slurm does not answer");
}

TEST(SlurmCommands, AJobDoesNotInheritTheJobInWhichItWasSubmitted) {
  EXPECT_THAT(environment_for_sbatch({"PATH=/bin",
                                      "SLURM_JOB_ID=7",
                                      "SLURM_STEP_ID=0",
                                      "SLURMD_NODENAME=n1",
                                      "SLURM_CONF=/etc/slurm.conf",
                                      "SBATCH_PARTITION=gpu"}),
              ElementsAre("PATH=/bin", "SLURM_CONF=/etc/slurm.conf", "SBATCH_PARTITION=gpu"));
}

}  // namespace
}  // namespace peal::launch::slurm
