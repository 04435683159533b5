// Tests the form of Vertex AI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

ReadJob read_pools(std::string_view text) { return read_job(text, "job.json"); }

std::string pools_problem(std::string_view text) {
  return usage_error_of([&] { read_pools(text); });
}

constexpr std::string_view kCustomJob = R"json({
  "displayName": "my training (2)",
  "labels": {"team": "vision"},
  "encryptionSpec": {"kmsKeyName": "k"},
  "jobSpec": {
    "workerPoolSpecs": [
      {
        "machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_V100",
                        "acceleratorCount": 2},
        "replicaCount": "1",
        "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        "containerSpec": {
          "imageUri": "gcr.io/p/torch",
          "command": ["python3", "train.py"],
          "args": ["--out", "$(AIP_MODEL_DIR)"],
          "env": [{"name": "A", "value": "$(B)-$(A)"}, {"name": "B", "value": "$(A)"}, {"name": "C"}]
        }
      },
      {
        "machineSpec": {"machineType": "e2-standard-4"},
        "replicaCount": 3,
        "containerSpec": {"imageUri": "gcr.io/p/other"}
      },
      {},
      {"replicaCount": 1, "containerSpec": {"imageUri": "gcr.io/p/evaluate"}}
    ],
    "scheduling": {"timeout": "3600s", "disableRetries": true, "strategy": "SPOT"},
    "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out/"},
    "serviceAccount": "s"
  }
})json";

TEST(WorkerPoolsTest, ACustomJobHasARoleForEachPool) {
  const ReadJob read = read_pools(kCustomJob);
  const Job& job = read.job;
  EXPECT_EQ(job.name, "my training (2)");
  EXPECT_THAT(job.labels, ElementsAre(Pair("team", "vision")));
  ASSERT_EQ(job.roles.size(), 3u);
  EXPECT_EQ(job.roles[0],
            (Role{.name = "workerpool0",
                  .image = "gcr.io/p/torch",
                  .command = {"python3", "train.py"},
                  .args = {"--out", "$(AIP_MODEL_DIR)"},
                  .env = {{"A", "$$(B)-$$(A)"}, {"B", "$(A)"}, {"C", ""}},
                  .resources = {.cpus = 8, .memory = 30 * 1024_MiB, .gpus = 2}}));
  EXPECT_EQ(job.roles[1].name, "workerpool1");
  EXPECT_EQ(job.roles[1].nodes, (NodeCount{3, 3}));
  EXPECT_EQ(job.roles[1].image, "gcr.io/p/other");
  EXPECT_EQ(job.roles[2].name, "workerpool3");
  EXPECT_FALSE(job.roles[2].in_world);
  EXPECT_EQ(job.success_role, "workerpool0");
  EXPECT_EQ(job.max_run_time, std::chrono::hours(1));
  EXPECT_EQ(job.restarts.most, 0);
  EXPECT_THAT(job.env,
              ElementsAre(Pair("AIP_CHECKPOINT_DIR", "gs://bucket/out/checkpoints/"),
                          Pair("AIP_MODEL_DIR", "gs://bucket/out/model/"),
                          Pair("AIP_TENSORBOARD_LOG_DIR", "gs://bucket/out/logs/")));
  EXPECT_EQ(job.document, R"({"python_module":"","package_uris":[],"job_args":[]})");
  EXPECT_THAT(read.notices,
              ElementsAre("not used here: encryptionSpec, workerPoolSpecs[0].diskSpec, "
                          "scheduling.strategy, serviceAccount"));
  EXPECT_EQ(read_job(print_job(job), "x.yaml").job, job);
}

TEST(WorkerPoolsTest, ASpecAloneIsReadToo) {
  const Job job = read_pools("workerPoolSpecs:\n- containerSpec: {imageUri: t}\nnetwork: n\n").job;
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.roles[0].name, "workerpool0");
  EXPECT_EQ(job.max_run_time, std::chrono::hours(24 * 7));
  EXPECT_EQ(job.restarts.most, 3);
}

TEST(WorkerPoolsTest, PackagesOfPythonRunInTheirImage) {
  const Job job = read_pools(R"(
workerPoolSpecs:
- pythonPackageSpec:
    executorImageUri: torch
    pythonModule: trainer.task
    packageUris: [dist/trainer.whl]
    args: [--x]
- replicaCount: 2
  pythonPackageSpec: {executorImageUri: torch, pythonModule: trainer.task, packageUris: [dist/trainer.whl]}
)")
                      .job;
  EXPECT_EQ(job.roles[0].command, (std::vector<std::string>{"python3", "-m", "trainer.task"}));
  EXPECT_EQ(job.roles[0].image, "torch");
  EXPECT_EQ(job.roles[1].env.at("PYTHONPATH"), "packages/trainer.whl");
  EXPECT_THAT(job.files, ElementsAre(JobFile{"dist/trainer.whl", "packages/trainer.whl"}));
  EXPECT_EQ(
      job.document,
      R"({"python_module":"trainer.task","package_uris":["dist/trainer.whl"],"job_args":["--x"]})");
}

TEST(WorkerPoolsTest, TheFirstPoolHasOneReplica) {
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{replicaCount: 2, containerSpec: {imageUri: t}}]"),
              HasSubstr("the first pool has exactly 1 replica"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: []"), HasSubstr("the first pool, which has"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{}, {containerSpec: {imageUri: t}}]"),
              StartsWith("job.json:1:18: workerPoolSpecs: the first pool"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{containerSpec: {imageUri: t}}, {replicaCount: 0}]"),
              HasSubstr("a pool without replicas is skipped by {}"));
}

TEST(WorkerPoolsTest, FieldsThatCannotBeSupportedAreRejected) {
  EXPECT_THAT(
      pools_problem("workerPoolSpecs: [{containerSpec: {imageUri: t}}, {}, {replicaCount: 1}]"),
      HasSubstr("workerPoolSpecs[2]: peal has no parameter servers"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{containerSpec: {imageUri: t}}, {}, {}, {}, {}]"),
              HasSubstr("there are 5 pools"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{machineSpec: {tpuTopology: 2x2}}]"),
              HasSubstr("TPUs"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{machineSpec: {machineType: ct5lp-hightpu-4t}}]"),
              HasSubstr("TPUs"));
  for (const std::string mounts : {"nfsMounts", "lustreMounts"}) {
    EXPECT_THAT(
        pools_problem("workerPoolSpecs: [{containerSpec: {imageUri: t}, " + mounts + ": []}]"),
        HasSubstr("peal mounts nothing"));
  }
}

TEST(WorkerPoolsTest, APoolHasOneKindOfProgram) {
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{replicaCount: 1}]"),
              HasSubstr("a pool has containerSpec or pythonPackageSpec"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{containerSpec: {command: [x]}}]"),
              HasSubstr("workerPoolSpecs[0].containerSpec: the field imageUri is missing"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{containerSpec: {imageUri: t}}, {replicaCount: 1, "
                            "containerSpec: {}}]"),
              HasSubstr("workerPoolSpecs[1].containerSpec: the field imageUri is missing"));
}

TEST(WorkerPoolsTest, MistakesHaveTheirPlace) {
  EXPECT_THAT(pools_problem(
                  "workerPoolSpecs: [{containerSpec: {imageUri: t, env: [{name: A}, {name: A}]}}]"),
              HasSubstr("env[1].name: the variable \"A\" is here twice"));
  EXPECT_THAT(
      pools_problem("jobSpec: {worker_pool_specs: []}"),
      HasSubstr(
          "jobSpec.worker_pool_specs: there is no such field; did you mean workerPoolSpecs?"));
  EXPECT_THAT(pools_problem("jobSpec: {}"),
              HasSubstr("jobSpec: the field workerPoolSpecs is missing"));
  EXPECT_THAT(pools_problem("worker_pool_specs: []"), HasSubstr("did you mean workerPoolSpecs?"));
  EXPECT_THAT(pools_problem("displayName: x\njobSpec: {workerPoolSpecs: [{containerSpec: "
                            "{imageUri: t}}]}\nlabel: {}"),
              StartsWith("job.json:3:1: label: there is no such field; did you mean labels?"));
  EXPECT_THAT(pools_problem("workerPoolSpecs: [{machineSpec: {machineType: n1-standart-4}}]"),
              HasSubstr("did you mean n1-standard-4?"));
}

}  // namespace
}  // namespace peal::launch
