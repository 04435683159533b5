#include "peal/launch/job/gcloud_flags.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

/// "--worker-count=2"
GivenFlag given(const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const GcloudFlag* const flag = gcloud_flag(text.substr(0, equals));
  EXPECT_NE(flag, nullptr) << text;
  return {flag, equals == text.size() ? "" : text.substr(equals + 1)};
}

ReadJob read_flagged(const std::vector<std::string>& flags,
                     const std::string& config = "",
                     const std::string& job = "mnist_1",
                     const std::vector<std::string>& arguments = {}) {
  std::vector<GivenFlag> parsed;
  for (const std::string& flag : flags) parsed.push_back(given(flag));
  Value document = config.empty() ? Value() : parse_document(config, "config.yaml");
  FlaggedDocument flagged = with_flags(std::move(document), job, parsed);
  return read_job(
      with_arguments(std::move(flagged.document), arguments), "config.yaml", flagged.unused);
}

std::string flag_problem(const std::vector<std::string>& flags, const std::string& config = "") {
  return usage_error_of([&] { read_flagged(flags, config); });
}

TEST(GcloudFlagsTest, FlagsMakeATrainingJob) {
  const ReadJob read = read_flagged({"--master-image-uri=gcr.io/p/torch:1",
                                     "--scale-tier=custom",
                                     "--master-machine-type=n1-standard-8",
                                     "--master-accelerator=count=2,type=nvidia-tesla-t4",
                                     "--worker-machine-type=n1-standard-4",
                                     "--worker-count=3",
                                     "--worker-accelerator=type=nvidia-tesla-t4",
                                     "--job-dir=gs://b/out",
                                     "--region=us-central1",
                                     "--labels=team=vision,stage=test",
                                     "--staging-bucket=gs://b",
                                     "--project=p"},
                                    "",
                                    "mnist_1",
                                    {"--epochs", "5"});
  const Job& job = read.job;
  EXPECT_EQ(job.name, "mnist_1");
  EXPECT_THAT(job.labels, ElementsAre(Pair("stage", "test"), Pair("team", "vision")));
  ASSERT_EQ(job.roles.size(), 2u);
  EXPECT_EQ(job.roles[0].resources, (Resources{.cpus = 8, .memory = 30 * 1024_MiB, .gpus = 2}));
  EXPECT_EQ(job.roles[1].nodes, (NodeCount{3, 3}));
  EXPECT_EQ(job.roles[1].image, "gcr.io/p/torch:1");
  EXPECT_EQ(job.roles[1].resources.gpus, 1);
  EXPECT_THAT(job.roles[1].args, ElementsAre("--epochs", "5", "--job-dir", "gs://b/out"));
  EXPECT_THAT(read.notices, ElementsAre("not used here: --staging-bucket, --project, --region"));
  EXPECT_THAT(job.document, HasSubstr(R"("workerCount":3)"));
  EXPECT_THAT(job.document, HasSubstr(R"("args":["--epochs","5"])"));
}

TEST(GcloudFlagsTest, FlagsOverrideTheFile) {
  const Job job =
      read_flagged({"--master-image-uri=new", "--scale-tier=basic", "--labels=team=y"},
                   "labels: {a: b, team: x}\njobId: other\ntrainingInput:\n"
                   "  masterConfig: {imageUri: old}\n  scaleTier: BASIC_GPU\n  args: [a]\n",
                   "mnist_1",
                   {"b"})
          .job;
  EXPECT_EQ(job.name, "mnist_1");
  EXPECT_EQ(job.roles[0].image, "new");
  EXPECT_EQ(job.roles[0].resources.gpus, std::nullopt);
  EXPECT_THAT(job.labels, ElementsAre(Pair("a", "b"), Pair("team", "y")));
  EXPECT_THAT(job.roles[0].args, ElementsAre("a", "b"));
}

TEST(GcloudFlagsTest, PackagesOfPythonAreNamedByFlags) {
  const Job job = read_flagged({"--module-name=trainer.task",
                                "--package-path=trainer",
                                "--packages=dist/a.whl,dist/b.whl",
                                "--runtime-version=2.8"},
                               "trainingInput: {packageUris: ['gs://x/y.tar.gz']}")
                      .job;
  EXPECT_THAT(job.roles[0].command, ElementsAre("python3", "-m", "trainer.task"));
  EXPECT_THAT(job.files,
              ElementsAre(JobFile{"trainer", "packages/trainer"},
                          JobFile{"dist/a.whl", "packages/a.whl"},
                          JobFile{"dist/b.whl", "packages/b.whl"}));
}

TEST(GcloudFlagsTest, ErrorsNameTheFlag) {
  const std::string image = "--master-image-uri=t";
  EXPECT_THAT(flag_problem({image, "--worker-count=two"}), StartsWith("--worker-count: "));
  EXPECT_THAT(flag_problem({image, "--worker-count=2"}),
              StartsWith("--worker-count: the tier BASIC decides"));
  EXPECT_THAT(flag_problem({image, "--scale-tier=gpu"}),
              StartsWith("--scale-tier: there is no tier"));
  EXPECT_THAT(flag_problem({image, "--scale-tier=custom"}), HasSubstr("(--master-machine-type)"));
  EXPECT_THAT(flag_problem({image, "--parameter-server-count=1"}),
              StartsWith("--parameter-server-count: peal has no parameter servers"));
  EXPECT_THAT(flag_problem({image, "--master-accelerator=cont=1"}),
              HasSubstr("is not count or type"));
  EXPECT_THAT(flag_problem({image, "--master-accelerator=count"}), HasSubstr("name=value"));
  EXPECT_THAT(flag_problem({image, "--use-chief-in-tf-config=maybe"}),
              HasSubstr("not true or false"));
  EXPECT_THAT(flag_problem({image, "--labels=a=1,a=2"}), StartsWith("--labels: a is here twice"));
  EXPECT_EQ(flag_problem({"--master-image-uri=\xff"}),
            "--master-image-uri: the value is not UTF-8 text");
  EXPECT_EQ(flag_problem({image, "--labels=a\xff=b"}), "--labels: the value is not UTF-8 text");
  EXPECT_EQ(usage_error_of([&] { read_flagged({image}, "", "j", {"\xff"}); }),
            "the arguments after --: the value is not UTF-8 text");
  EXPECT_THAT(flag_problem({"--scale-tier=basic"}), HasSubstr("(--master-image-uri)"));
  EXPECT_THAT(usage_error_of([&] { read_flagged({image}, "", "my-job"); }),
              StartsWith("the name of the job: \"my-job\" is not legal"));
}

TEST(GcloudFlagsTest, FlagsMakeACustomJob) {
  const ReadJob read = read_flagged(
      {"--display-name=my job",
       "--command=python3,train.py",
       "--args=^:^--lr=1,2:--x",
       "--worker-pool-spec=machine-type=n1-standard-8,replica-count=1,container-image-uri=torch,"
       "accelerator-type=NVIDIA_TESLA_V100,accelerator-count=2",
       "--worker-pool-spec=replica-count=2,container-image-uri=torch",
       "--worker-pool-spec=",
       "--region=r",
       "--network=n",
       "--kms-key=k",
       "--enable-web-access"},
      "",
      "");
  EXPECT_EQ(read.job.name, "my job");
  ASSERT_EQ(read.job.roles.size(), 2u);
  EXPECT_EQ(read.job.roles[0].resources,
            (Resources{.cpus = 8, .memory = 30 * 1024_MiB, .gpus = 2}));
  EXPECT_EQ(read.job.roles[1].nodes, (NodeCount{2, 2}));
  for (const Role& role : read.job.roles) {
    EXPECT_THAT(role.command, ElementsAre("python3", "train.py"));
    EXPECT_THAT(role.args, ElementsAre("--lr=1,2", "--x"));
  }
  EXPECT_THAT(read.notices,
              ElementsAre("not used here: --region, --kms-key, --network, --enable-web-access"));
}

TEST(GcloudFlagsTest, PoolsOfFlagsReplaceThoseOfTheFile) {
  const std::string config =
      "displayName: d\njobSpec:\n  workerPoolSpecs: [{containerSpec: {imageUri: old}}, "
      "{replicaCount: 1, containerSpec: {imageUri: old}}]\n  scheduling: {timeout: 60s}\n";
  const Job job = read_flagged({"--worker-pool-spec=container-image-uri=new"}, config, "").job;
  ASSERT_EQ(job.roles.size(), 1u);
  EXPECT_EQ(job.roles[0].image, "new");
  EXPECT_EQ(job.max_run_time, std::chrono::seconds(60));
  const Job other = read_flagged({"--args=a"}, config, "", {"b"}).job;
  EXPECT_THAT(other.roles[0].args, ElementsAre("a", "b"));
  EXPECT_THAT(other.roles[1].args, ElementsAre("a", "b"));
}

TEST(GcloudFlagsTest, PackagesOfPythonAreNamedInPools) {
  const Job job = read_flagged({"--worker-pool-spec=executor-image-uri=torch,python-module=t.task,"
                                "local-package-path=trainer"},
                               "",
                               "")
                      .job;
  EXPECT_THAT(job.roles[0].command, ElementsAre("python3", "-m", "t.task"));
  EXPECT_THAT(job.files, ElementsAre(JobFile{"trainer", "packages/trainer"}));
}

TEST(GcloudFlagsTest, RelativePathsInFlagsBeginAtTheGivenFolder) {
  const std::vector<GivenFlag> flags = {
      given("--module-name=m"), given("--package-path=trainer"), given("--packages=/a.whl")};
  const Value document = with_flags({}, "j", flags, "/home/me").document;
  EXPECT_THAT(read_job(document, "j").job.files,
              ElementsAre(JobFile{"/home/me/trainer", "packages/trainer"},
                          JobFile{"/a.whl", "packages/a.whl"}));
}

TEST(GcloudFlagsTest, MistakesInPoolsAreExplained) {
  EXPECT_THAT(
      flag_problem({"--worker-pool-spec=replica-cout=1"}),
      StartsWith("--worker-pool-spec: there is no \"replica-cout\"; did you mean replica-count?"));
  EXPECT_THAT(flag_problem({"--worker-pool-spec=replica-count=1,machine-type=n1-standard-4"}),
              StartsWith("--worker-pool-spec: a pool needs container-image-uri=IMAGE"));
  EXPECT_THAT(flag_problem({"--worker-pool-spec=script=a.py"}), HasSubstr("peal builds no images"));
  EXPECT_THAT(flag_problem({"--worker-pool-spec=replica-count=2,container-image-uri=t"}),
              StartsWith("--worker-pool-spec: the first pool has exactly 1 replica"));
  EXPECT_THAT(
      flag_problem({"--worker-pool-spec=executor-image-uri=t,python-module=m", "--command=x"}),
      StartsWith("--command: no pool has a container"));
}

TEST(GcloudFlagsTest, FlagsBelongToOneKindOfJob) {
  const std::string training = "trainingInput: {masterConfig: {imageUri: t}}";
  EXPECT_THAT(flag_problem({"--args=a"}, training),
              StartsWith("--args: it belongs to custom jobs"));
  EXPECT_THAT(
      flag_problem({"--worker-count=1"}, "workerPoolSpecs: [{containerSpec: {imageUri: t}}]"),
      StartsWith("--worker-count: it belongs to training jobs"));
  const std::string own = "roles: [{name: a, command: x}]";
  EXPECT_THAT(flag_problem({"--worker-count=1"}, own),
              StartsWith("--worker-count: it changes a job in a form of gcloud"));
  const ReadJob read = read_flagged({"--project=p"}, own, "n", {"y"});
  EXPECT_THAT(read.notices, ElementsAre("not used here: --project"));
  EXPECT_EQ(read.job.name, "n");
  EXPECT_THAT(read.job.roles[0].args, ElementsAre("y"));
}

TEST(GcloudFlagsTest, ArgumentsFollowTheArgumentsOfTheReplicas) {
  const Job job = read_flagged({},
                               "trainingInput:\n  scaleTier: CUSTOM\n  masterType: standard\n"
                               "  workerType: standard\n  workerCount: 1\n  jobDir: d\n"
                               "  masterConfig: {imageUri: t, containerArgs: [a]}\n",
                               "",
                               {"b"})
                      .job;
  EXPECT_THAT(job.roles[0].args, ElementsAre("a", "b", "--job-dir", "d"));
  EXPECT_THAT(job.roles[1].args, ElementsAre("b", "--job-dir", "d"));
}

TEST(GcloudFlagsTest, EachFlagIsInTheTableOnce) {
  std::set<std::string_view> names;
  for (const GcloudFlag& flag : gcloud_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_TRUE(flag.name.starts_with("--"));
    EXPECT_FALSE(flag.training.empty() && flag.custom_job.empty()) << flag.name;
  }
  EXPECT_EQ(gcloud_flag("--worker-cout"), nullptr);
}

}  // namespace
}  // namespace peal::launch
