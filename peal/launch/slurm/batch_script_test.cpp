#include "peal/launch/slurm/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch::slurm {
namespace {

using testing::HasSubstr;
using testing::Not;

ScriptOptions options() {
  return {
      .id = "mnist-7k2pxd", .peal = "/opt/peal/bin/peal", .folder = "/home/u/jobs/mnist-7k2pxd"};
}

Role role(const std::string& name, NodeCount nodes) {
  return {.name = name, .nodes = nodes, .command = {"train", "--secret-option"}};
}

TEST(BatchScript, OfAJobWithAllFields) {
  Job job{.name = "mnist", .roles = {role("worker", {2, 4})}};
  job.roles[0].ranks_per_node = 4;
  job.roles[0].resources = {.cpus = 7.5, .memory = 1'000'000_B, .gpus = 2};
  job.env["TOKEN"] = "hidden";
  job.spare_nodes = 1;
  job.max_run_time = std::chrono::seconds(93'784);
  job.priority = -10;
  job.labels = {{"team", "speech"}, {"run", "it's #1"}};
  job.engine_options["slurm"] = {"--partition=gpu", "--nodes=3"};
  EXPECT_EQ(batch_script(job, options()),
            R"(#!/bin/sh
#SBATCH --job-name=mnist-7k2pxd
#SBATCH --output=/home/u/jobs/mnist-7k2pxd/launcher.log
#SBATCH --open-mode=append
#SBATCH '--comment=run=it'\''s #1,team=speech'
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --time=1-02:03:04
#SBATCH --nice=10
#SBATCH --nodes=3-5
#SBATCH --cpus-per-task=8
#SBATCH --mem=1M
#SBATCH --gpus-per-node=2
#SBATCH --partition=gpu
#SBATCH --nodes=3
exec /opt/peal/bin/peal job /home/u/jobs/mnist-7k2pxd
)");
}

TEST(BatchScript, RolesWithTheSameResourcesShareAComponent) {
  const Job job{.name = "mnist", .roles = {role("master", {1, 1}), role("worker", {3, 3})}};
  const std::string script = batch_script(job, options());
  EXPECT_THAT(script, HasSubstr("--nodes=4\n"));
  EXPECT_THAT(script, Not(HasSubstr("hetjob")));
}

TEST(BatchScript, RolesWithOtherResourcesAreComponentsInTheirOrder) {
  Job job{.name = "mnist", .roles = {role("master", {1, 1}), role("worker", {3, 3})}};
  job.roles[1].resources.gpus = 8;
  job.engine_options["slurm"] = {"--partition=main"};
  EXPECT_EQ(batch_script(job, options()),
            R"(#!/bin/sh
#SBATCH --job-name=mnist-7k2pxd
#SBATCH --output=/home/u/jobs/mnist-7k2pxd/launcher.log
#SBATCH --open-mode=append
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --partition=main
#SBATCH hetjob
#SBATCH --no-kill
#SBATCH --requeue
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --gpus-per-node=8
#SBATCH --partition=main
exec /opt/peal/bin/peal job /home/u/jobs/mnist-7k2pxd
)");
}

TEST(BatchScript, DifferentRolesNeedFixedNumbersOfNodes) {
  Job job{.name = "mnist", .roles = {role("master", {1, 1}), role("worker", {1, 3})}};
  job.roles[1].resources.gpus = 8;
  EXPECT_THROW(batch_script(job, options()), Error);
  job.roles[1].nodes = {3, 3};
  batch_script(job, options());
  job.spare_nodes = 1;
  EXPECT_THROW(batch_script(job, options()), Error);
}

TEST(BatchScript, PathsAreQuotedForTheShellAndForSlurm) {
  ScriptOptions strange = options();
  strange.folder = "/a b/50%j/it's $HOME";
  const std::string script = batch_script({.name = "x", .roles = {role("w", {1, 1})}}, strange);
  EXPECT_THAT(script, HasSubstr(R"(#SBATCH '--output=/a b/50%%j/it'\''s $HOME/launcher.log')"));
  EXPECT_THAT(script, HasSubstr(R"(job '/a b/50%j/it'\''s $HOME')"));
  strange.folder = "/a\nb";
  EXPECT_THROW(batch_script({.name = "x", .roles = {role("w", {1, 1})}}, strange), Error);
}

TEST(BatchScript, HasNoValueOfTheJob) {
  Job job{.name = "mnist", .roles = {role("worker", {1, 1})}};
  job.env["TOKEN"] = "hidden";
  const std::string script = batch_script(job, options());
  EXPECT_THAT(script, Not(HasSubstr("hidden")));
  EXPECT_THAT(script, Not(HasSubstr("--secret-option")));
}

TEST(BatchScript, FieldsWithoutAMeaningAreNamed) {
  Job job{.name = "mnist"};
  job.roles = {{.name = "worker", .command = {"./train"}}};
  EXPECT_THAT(unused_fields(job), testing::IsEmpty());
  job.priority = 1;
  job.start_timeout = std::chrono::seconds(60);
  job.roles[0].resources.shm = Bytes(5000);
  EXPECT_THAT(unused_fields(job),
              testing::ElementsAre(testing::HasSubstr("priority is not used"),
                                   testing::HasSubstr("the time in Slurm's queue"),
                                   testing::HasSubstr("resources.shm is not used")));
}

}  // namespace
}  // namespace peal::launch::slurm
