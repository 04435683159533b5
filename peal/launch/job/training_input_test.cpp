// Tests the form of AI Platform Training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/launch/job/print_job.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

ReadJob read_training(std::string_view text) { return read_job(text, "config.yaml"); }

std::string training_problem(std::string_view text) {
  return usage_error_of([&] { read_training(text); });
}

/// A job with an image and these lines in trainingInput.
std::string with(const std::string& lines) {
  return "trainingInput:\n  masterConfig: {imageUri: torch}\n" + lines;
}

std::vector<std::string> names_of(const Job& job) {
  std::vector<std::string> names;
  for (const Role& role : job.roles) names.push_back(role.name);
  return names;
}

constexpr std::string_view kDocument = R"(
jobId: mnist_1
labels: {team: vision}
trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highmem-8
  masterConfig:
    imageUri: gcr.io/p/torch:1
    containerCommand: [python3, train.py]
    acceleratorConfig: {count: "2", type: NVIDIA_TESLA_T4}
  workerType: n1-standard-4
  workerCount: "2"
  workerConfig:
    containerCommand: [python3, train.py]
  args: [--epochs, "5"]
  jobDir: gs://bucket/out
  region: us-central1
  scheduling: {maxRunningTime: 7200s, maxWaitTime: 3600s, priority: 500}
)";

TEST(TrainingInputTest, TheDocumentsJobHasAMasterAndWorkers) {
  const ReadJob read = read_training(kDocument);
  const Job& job = read.job;
  EXPECT_EQ(job.name, "mnist_1");
  EXPECT_EQ(job.labels.at("team"), "vision");
  ASSERT_THAT(names_of(job), ElementsAre("master", "worker"));
  EXPECT_EQ(job.roles[0],
            (Role{.name = "master",
                  .image = "gcr.io/p/torch:1",
                  .command = {"python3", "train.py"},
                  .args = {"--epochs", "5", "--job-dir", "gs://bucket/out"},
                  .resources = {.cpus = 8, .memory = 52 * 1024_MiB, .gpus = 2}}));
  EXPECT_EQ(job.roles[1],
            (Role{.name = "worker",
                  .nodes = {2, 2},
                  .image = "gcr.io/p/torch:1",
                  .command = {"python3", "train.py"},
                  .args = {"--epochs", "5", "--job-dir", "gs://bucket/out"},
                  .resources = {.cpus = 4, .memory = 15 * 1024_MiB}}));
  EXPECT_EQ(job.success_role, "master");
  EXPECT_EQ(job.max_run_time, std::chrono::hours(2));
  EXPECT_EQ(job.start_timeout, std::chrono::hours(1));
  EXPECT_EQ(job.priority, 500);
  EXPECT_EQ(job.form, JobForm::kTrainingInput);
  EXPECT_THAT(job.document,
              AllOf(StartsWith(R"({"scaleTier":"CUSTOM")"),
                    HasSubstr(R"("acceleratorConfig":{"count":"2")")));
  EXPECT_THAT(read.notices, ElementsAre("not used here: region"));
}

TEST(TrainingInputTest, TheJobIsReadBackFromPealsOwnForm) {
  const Job job = read_training(kDocument).job;
  EXPECT_EQ(read_job(print_job(job), "x.yaml").job, job);
}

TEST(TrainingInputTest, WorkersAndEvaluatorsTakeTheImageOfTheMasterIfTheyHaveNone) {
  const Job job = read_training(with("  scaleTier: CUSTOM\n  masterType: standard\n"
                                     "  workerType: standard\n  workerCount: 1\n"
                                     "  workerConfig: {imageUri: other}\n"
                                     "  evaluatorType: standard\n  evaluatorCount: 1\n"))
                      .job;
  ASSERT_THAT(names_of(job), ElementsAre("master", "worker", "evaluator"));
  EXPECT_EQ(job.roles[1].image, "other");
  EXPECT_EQ(job.roles[2].image, "torch");
  EXPECT_TRUE(job.roles[1].in_world);
  EXPECT_FALSE(job.roles[2].in_world);
}

TEST(TrainingInputTest, TiersAreClusters) {
  const auto tier = [](const std::string& name) {
    return read_training(with("  scaleTier: " + name));
  };
  const Job basic = tier("BASIC").job;
  EXPECT_EQ(read_training(with("")).job.roles, basic.roles);
  ASSERT_THAT(names_of(basic), ElementsAre("master"));
  EXPECT_EQ(basic.roles[0].resources, (Resources{.cpus = 4, .memory = 15 * 1024_MiB}));
  const Job gpu = tier("BASIC_GPU").job;
  EXPECT_EQ(gpu.roles[0].resources, (Resources{.cpus = 8, .memory = 30 * 1024_MiB, .gpus = 1}));
  const ReadJob standard = tier("STANDARD_1");
  ASSERT_THAT(names_of(standard.job), ElementsAre("master", "worker"));
  EXPECT_EQ(standard.job.roles[1].nodes, (NodeCount{4, 4}));
  EXPECT_EQ(standard.job.roles[1].resources.cpus, 8);
  EXPECT_THAT(standard.notices, ElementsAre(StartsWith("the 3 parameter servers of STANDARD_1")));
  EXPECT_EQ(node_count(tier("PREMIUM_1").job), 20);
  EXPECT_THAT(training_problem(with("  scaleTier: BASIC_TPU\n")),
              StartsWith("config.yaml:3:14: trainingInput.scaleTier: peal has no TPUs"));
  EXPECT_THAT(training_problem(with("  scaleTier: BASIC_GPUS\n")),
              HasSubstr("did you mean BASIC_GPU?"));
}

TEST(TrainingInputTest, CountsAgreeWithTheTier) {
  EXPECT_THAT(
      training_problem(with("  workerCount: 2\n")),
      StartsWith("config.yaml:3:16: trainingInput.workerCount: the tier BASIC decides about "
                 "the worker; write scaleTier: CUSTOM"));
  EXPECT_THAT(training_problem(with("  masterType: standard\n")),
              HasSubstr("the tier BASIC decides"));
  EXPECT_THAT(training_problem(with("  scaleTier: CUSTOM\n")), HasSubstr("needs masterType"));
  const std::string custom = "  scaleTier: CUSTOM\n  masterType: n1-standard-4\n";
  EXPECT_THAT(training_problem(with(custom + "  workerCount: 2\n")),
              HasSubstr("trainingInput.workerCount: it needs workerType"));
  EXPECT_THAT(training_problem(with(custom + "  workerType: n1-standard-4\n")),
              HasSubstr("trainingInput.workerType: it needs workerCount"));
  EXPECT_THAT(
      training_problem(with(custom + "  evaluatorType: n1-standard-4\n  evaluatorCount: 0\n")),
      HasSubstr("trainingInput.evaluatorCount: with evaluatorType, it is at least 1: give"));
  EXPECT_THAT(training_problem(with(custom + "  workerType: standard\n  workerCount: 1\n")),
              HasSubstr("mix the older names of machines"));
  EXPECT_THAT(names_of(read_training(with(custom + "  workerCount: 0\n")).job),
              ElementsAre("master"));
}

TEST(TrainingInputTest, AJobHasAnImageOrAModuleOfPython) {
  EXPECT_THAT(training_problem("trainingInput: {scaleTier: BASIC}\n"),
              HasSubstr("the image is missing"));
  const ReadJob read = read_training(
      "trainingInput: {runtimeVersion: '2.8', pythonVersion: '3.7', pythonModule: trainer.task,\n"
      "  packageUris: [dist/a.whl, trainer/], args: [--x]}\n");
  EXPECT_EQ(read.job.roles[0].command, (std::vector<std::string>{"python3", "-m", "trainer.task"}));
  EXPECT_EQ(read.job.roles[0].image, "");
  EXPECT_THAT(
      read.job.files,
      ElementsAre(JobFile{"dist/a.whl", "packages/a.whl"}, JobFile{"trainer", "packages/trainer"}));
  EXPECT_EQ(read.job.env.at("PYTHONPATH"), "packages:packages/a.whl");
  EXPECT_THAT(read.notices, ElementsAre("not used here: runtimeVersion, pythonVersion"));
  EXPECT_THAT(training_problem(with("  pythonModule: trainer.task\n")), HasSubstr("not both"));
  EXPECT_THAT(
      training_problem("trainingInput: {pythonModule: t, packageUris: ['gs://b/a.tar.gz']}\n"),
      HasSubstr("peal cannot fetch \"gs://b/a.tar.gz\""));
  EXPECT_THAT(training_problem("trainingInput: {pythonModule: t, packageUris: [a.tar.gz]}\n"),
              HasSubstr("build a wheel"));
  EXPECT_THAT(training_problem("trainingInput: {pythonModule: t, scaleTier: BASIC,\n"
                               "  masterConfig: {containerArgs: [x]}}\n"),
              HasSubstr("containerCommand and containerArgs need an imageUri"));
}

TEST(TrainingInputTest, ArgumentsAreThoseOfTheJobOrOfTheReplicas) {
  const Job job =
      read_training(
          "trainingInput:\n  masterConfig: {imageUri: t, containerArgs: [a]}\n  jobDir: d\n")
          .job;
  EXPECT_THAT(job.roles[0].args, ElementsAre("a", "--job-dir", "d"));
  EXPECT_THAT(
      training_problem("trainingInput:\n  args: [x]\n"
                       "  masterConfig: {imageUri: t, containerArgs: [a]}\n"),
      StartsWith("config.yaml:3:46: trainingInput.masterConfig.containerArgs: it excludes"));
}

TEST(TrainingInputTest, FieldsOfTheCloudAreNamedInOneLine) {
  const ReadJob read = read_training(
      "trainingInput:\n  masterConfig: {imageUri: t, diskConfig: {bootDiskType: pd-ssd}}\n"
      "  region: x\n  network: n\n  serviceAccount: s\n  enableWebAccess: true\n"
      "  encryptionConfig: {kmsKeyName: k}\n  runtimeVersion: '2.8'\n"
      "  scheduling: {strategy: X, resilientToWorkerRestart: true}\n");
  EXPECT_THAT(
      read.notices,
      ElementsAre("not used here: masterConfig.diskConfig, runtimeVersion, "
                  "scheduling.resilientToWorkerRestart, scheduling.strategy, region, network, "
                  "serviceAccount, encryptionConfig, enableWebAccess"));
  EXPECT_THAT(read_training(with("")).notices, IsEmpty());
}

TEST(TrainingInputTest, FieldsThatCannotBeSupportedAreRejected) {
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {"hyperparameters: {}", "does not search hyperparameters"},
           {"nasJobSpec: {}", "does not search network architectures"},
           {"parameterServerCount: 2", "has no parameter servers"},
           {"parameterServerType: standard", "has no parameter servers"},
           {"parameterServerConfig: {imageUri: x}", "has no parameter servers"}}) {
    EXPECT_THAT(training_problem(with("  " + line + "\n")), HasSubstr(problem));
  }
  EXPECT_THAT(training_problem("trainingInput: {masterConfig: {imageUri: t, tpuTfVersion: x}}\n"),
              HasSubstr("has no TPUs"));
  EXPECT_THAT(training_problem("trainingInput: {masterConfig: {imageUri: t, acceleratorConfig: "
                               "{count: 1, type: TPU_V3}}}\n"),
              HasSubstr("has no TPUs"));
  EXPECT_THAT(training_problem(with("  scaleTier: CUSTOM\n  masterType: cloud_tpu\n")),
              HasSubstr("has no TPUs"));
  EXPECT_THAT(read_training(with("  parameterServerCount: 0\n")).notices, IsEmpty());
}

TEST(TrainingInputTest, AcceleratorsHaveATypeAndACount) {
  const auto with_gpus = [](const std::string& config) {
    return training_problem(
        "trainingInput: {masterConfig: {imageUri: t, acceleratorConfig: " + config + "}}\n");
  };
  EXPECT_THAT(with_gpus("{count: 1}"), HasSubstr("it needs type"));
  EXPECT_THAT(with_gpus("{type: NVIDIA_TESLA_T4}"), HasSubstr("it needs count"));
  EXPECT_THAT(with_gpus("{count: 1, type: nvidia}"), HasSubstr("is not an accelerator"));
  EXPECT_THAT(with_gpus("{count: 1, type: NVIDIA_TESLA_P10}"),
              HasSubstr("is not an accelerator; did you mean NVIDIA_TESLA_P100?"));
  EXPECT_THAT(with_gpus("{counts: 1, type: NVIDIA_TESLA_T4}"), HasSubstr("did you mean count?"));
}

TEST(TrainingInputTest, UnknownFieldsAreNamedWithTheNearestLegalOne) {
  EXPECT_THAT(training_problem(with("  worker_count: 2\n")),
              HasSubstr("did you mean workerCount?"));
  EXPECT_THAT(training_problem(with("  scaleTeir: CUSTOM\n  masterType: standard\n")),
              HasSubstr("did you mean scaleTier?"));
  EXPECT_THAT(training_problem("trainingInput: {masterConfig: {image_uri: x}}\n"),
              HasSubstr("did you mean imageUri?"));
  EXPECT_THAT(training_problem(with("labls: {}\n")), HasSubstr("did you mean labels?"));
  EXPECT_THAT(training_problem(with("roles: []\n")), HasSubstr("roles: there is no such field"));
  EXPECT_THAT(training_problem(with("  scheduling: {maxRuningTime: 5s}\n")),
              HasSubstr("did you mean maxRunningTime?"));
  EXPECT_THAT(training_problem("training_input: {}\n"), HasSubstr("did you mean trainingInput?"));
}

TEST(TrainingInputTest, TimesAndPrioritiesHaveBounds) {
  EXPECT_EQ(read_training(with("")).job.max_run_time, std::chrono::hours(24 * 7));
  EXPECT_EQ(read_training(with("")).job.restarts.most, 3);
  EXPECT_THAT(training_problem(with("  scheduling: {maxWaitTime: 60s}\n")),
              HasSubstr("less than 1800s"));
  EXPECT_THAT(training_problem(with("  scheduling: {priority: 1001}\n")),
              HasSubstr("from 0 to 1000"));
  EXPECT_THAT(training_problem(with("  scheduling: {maxRunningTime: 7200}\n")),
              HasSubstr("has no unit"));
}

TEST(TrainingInputTest, JobIdsAreLettersDigitsAndUnderscores) {
  EXPECT_THAT(training_problem(with("jobId: my-job\n")), HasSubstr("\"my-job\" is not legal"));
  EXPECT_EQ(read_training(with("")).job.name, "config");
}

}  // namespace
}  // namespace peal::launch
