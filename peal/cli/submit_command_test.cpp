// Tests `peal submit` from outside.
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/temporary_folder.h"
#include "peal/cli/testing/program.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kOwnForm =
    "name: mnist\nroles:\n- {name: trainer, nodes: 2, command: [./train, -v]}\n";
constexpr std::string_view kTrainingForm =
    "trainingInput:\n  masterConfig: {imageUri: torch}\n  region: r\n  jobDir: out\n";

class SubmitCommandTest : public testing::Test {
 protected:
  /// The path of a new file with this text.
  std::string file(const std::string& name, std::string_view text) const {
    const std::string path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  static Ended submit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "submit");
    return run_program(arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(SubmitCommandTest, PrintShowsTheJobInPealsOwnForm) {
  const Ended ended = submit({file("job.yaml", kOwnForm), "--print", "--", "--epochs", "5"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out,
            "name: mnist\nroles:\n  - name: trainer\n    nodes: 2\n    command: [\"./train\", -v]\n"
            "    args: [--epochs, \"5\"]\n");
  EXPECT_EQ(ended.err, "");
}

TEST_F(SubmitCommandTest, NoticesGoToTheStandardError) {
  const Ended ended = submit({file("config.yaml", kTrainingForm), "--print", "--quiet"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.err, "peal: not used here: --quiet, region\n");
  EXPECT_THAT(ended.out, HasSubstr("name: config\n"));
}

TEST_F(SubmitCommandTest, DryRunShowsTheProcessesOnTheHosts) {
  const std::string job = file("job.yaml", kOwnForm);
  const Ended listed = submit({job, "--dry-run", "-H", "a:1,b:1"});
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(
      listed.out,
      AllOf(StartsWith("job mnist: 2 nodes on 2 hosts, 2 processes\n"),
            HasSubstr("rank 1: trainer 1 on b (node 1, local rank 0)\n  command: ./train -v\n")));
  const std::string hosts = file("hosts", "a slots=2\n");
  EXPECT_THAT(submit({job, "--dry-run", "--hostfile", hosts}).out,
              HasSubstr("rank 1: trainer 1 on a"));
  EXPECT_THAT(submit({job, "--dry-run"}).out, HasSubstr("rank 1: trainer 1 on node-1"));
}

TEST_F(SubmitCommandTest, TooFewHostsAreAnErrorWithTheCounts) {
  const Ended ended = submit({file("job.yaml", kOwnForm), "--dry-run", "-H", "a"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err,
              StartsWith("peal: the job needs 2 nodes (2 trainer), but the 1 host has room"));
  EXPECT_EQ(ended.out, "");
}

TEST_F(SubmitCommandTest, GcloudsFlagsOverrideTheFile) {
  const std::string config = file("config.yaml", kTrainingForm);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"mnist_1", "--config", config},
        std::vector<std::string>{"--config=" + config, "mnist_1"}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(),
               {"--scale-tier",
                "custom",
                "--master-machine-type=standard",
                "--worker_machine_type",
                "standard",
                "--worker-count",
                "1",
                "--worker-count",
                "2",
                "--print",
                "--",
                "-x",
                "--print"});
    const Ended ended = submit(all);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out,
                AllOf(StartsWith("name: mnist_1\n"),
                      HasSubstr("- name: worker\n    nodes: 2\n"),
                      HasSubstr("args: [-x, --print, --job-dir, out]")));
  }
}

TEST_F(SubmitCommandTest, FlagsAloneDescribeAJob) {
  const Ended training = submit({"mnist", "--master-image-uri", "torch", "--print"});
  EXPECT_EQ(training.status, 0) << training.err;
  EXPECT_THAT(training.out, HasSubstr("name: mnist\n"));
  const Ended custom = submit({"--display-name",
                               "my job",
                               "--worker-pool-spec=container-image-uri=a",
                               "--worker-pool-spec=replica-count=2,container-image-uri=b",
                               "--worker-pool-spec=",
                               "--worker-pool-spec",
                               "",
                               "--dry-run"});
  EXPECT_EQ(custom.status, 0) << custom.err;
  EXPECT_THAT(custom.out,
              AllOf(StartsWith("job my job: 3 nodes"), HasSubstr("workerpool1 1 on node-2")));
}

TEST_F(SubmitCommandTest, PackagesOfFlagsAreFoundFromAnyFolder) {
  const std::string config =
      file("config.yaml", "trainingInput: {pythonModule: m, packageUris: [a.whl]}");
  EXPECT_THAT(submit({"j", "--config", config, "--print"}).out, HasSubstr("from: a.whl\n"));
  EXPECT_THAT(submit({"j", "--config", config, "--packages", "b.whl", "--print"}).out,
              HasSubstr("from: " + std::filesystem::current_path().string() + "/b.whl\n"));
}

TEST_F(SubmitCommandTest, FieldsWithoutAMeaningAreNamed) {
  const std::string path = file("job.yaml", "roles: [{name: w, command: x}]\npriority: 5\n");
  const Ended ended = submit({path, "--dry-run", "--to=local"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, HasSubstr("peal: priority is not used: the job starts at once"));
  EXPECT_EQ(submit({path, "--dry-run"}).err, "");
}

TEST_F(SubmitCommandTest, StreamLogsExcludesAsync) {
  const std::string path = file("job.yaml", "roles: [{name: w, command: x}]\n");
  const Ended ended = submit({path, "--to=local", "--stream-logs", "--async"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("--stream-logs excludes --async"));
}

TEST_F(SubmitCommandTest, DryRunRejectsWhatSubmitRejects) {
  const auto with = [&](const std::string& fields) {
    return file("job.yaml", "roles: [{name: w, command: x}]\n" + fields);
  };
  for (const std::string option : {"--dry-run", "--async"}) {
    const Ended files = submit({with("files: [none.py]\n"), option, "--to=local"});
    EXPECT_EQ(files.status, 2);
    EXPECT_EQ(files.out, "");
    EXPECT_THAT(files.err, HasSubstr("none.py"));
    const Ended folder = submit({with("directory: /no/such/folder\n"), option, "--to=local"});
    EXPECT_EQ(folder.status, 2);
    EXPECT_THAT(folder.err, HasSubstr("directory: there is no folder /no/such/folder"));
  }
  EXPECT_EQ(submit({with("files: [none.py]\n"), "--dry-run"}).status, 2);
  EXPECT_EQ(submit({with("directory: /no/such/folder\n"), "--dry-run"}).status, 0)
      << "the folder may exist on the hosts";
}

TEST_F(SubmitCommandTest, MistakesAreExplained) {
  const std::string job = file("job.yaml", kOwnForm);
  const auto error = [](const std::vector<std::string>& arguments) {
    const Ended ended = submit(arguments);
    EXPECT_EQ(ended.status, 2);
    return ended.err;
  };
  EXPECT_THAT(error({}), HasSubstr("no job given"));
  EXPECT_THAT(error({"none.yaml"}), HasSubstr("none.yaml: there is no such file"));
  EXPECT_THAT(error({folder_.path(), "--print"}), HasSubstr(": this is a folder; a job"));
  EXPECT_THAT(error({"j", "--config", folder_.path(), "--print"}), HasSubstr("cannot be read"));
  EXPECT_THAT(error({job, "--worker-cout", "2"}),
              HasSubstr("there is no option --worker-cout; did you mean --worker-count?"));
  EXPECT_THAT(error({job, "--worker-count", "2", "--print"}), HasSubstr("peal's own form"));
  for (const char* const count : {"-n", "-np", "--nproc-per-node=2", "--nodes"}) {
    EXPECT_THAT(error({job, count, "2"}), HasSubstr("nodes and ranks_per_node of its roles"));
  }
  EXPECT_THAT(error({job, "--to", "slrum", "--print"}), HasSubstr("did you mean slurm?"));
  EXPECT_THAT(error({job, "-H", "a:x", "--dry-run"}), HasSubstr("-H: "));
  EXPECT_THAT(error({job, "-H", "a", "--hostfile", "b"}), HasSubstr("give one of them"));
  EXPECT_THAT(error({file("bad.yaml", "name: x\nroels: []\n")}),
              HasSubstr("bad.yaml:2:1: roels: there is no such field; did you mean roles?"));
}

}  // namespace
}  // namespace peal::cli
