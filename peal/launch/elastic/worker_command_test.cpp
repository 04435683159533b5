#include "peal/launch/elastic/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::elastic {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(WorkerCommandTest, AWorkerHasItsIdentityAndNoRank) {
  LaunchOptions options;
  options.variables = {{"ADDED", "1"}};
  const Variables inherited = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"HOME", "/h"}};
  const JobContext job{.id = "j", .secret = Secret("hush")};
  WorkerKit kit;
  kit.program = "/bin/train";
  kit.arguments = {"train", "--x"};
  kit.common = common_environment(options, job, inherited);
  kit.driver = "127.0.0.1:5";
  const Worker worker{.number = 6, .host = "127.0.0.1", .slot = 1};
  const RankCommand command = worker_command(options, kit, worker, 9, {.cpus = {4}, .threads = 2});
  EXPECT_EQ(command.rank, 9);
  EXPECT_EQ(command.host, "127.0.0.1");
  EXPECT_EQ(command.program, "/bin/train");
  EXPECT_THAT(command.arguments, ElementsAre("train", "--x"));
  EXPECT_THAT(command.cpus, ElementsAre(4));
  EXPECT_THAT(command.environment,
              AllOf(Contains(Pair("HOROVOD_ELASTIC", "1")),
                    Contains(Pair("HOROVOD_HOSTNAME", "127.0.0.1")),
                    Contains(Pair("HOROVOD_LOCAL_RANK", "1")),
                    Contains(Pair("PEAL_ELASTIC_DRIVER", "127.0.0.1:5")),
                    Contains(Pair("PEAL_ELASTIC_WORKER", "6")),
                    Contains(Pair("PEAL_JOB", "j")),
                    Contains(Pair("PEAL_SECRET", "hush")),
                    Contains(Pair("ADDED", "1")),
                    Contains(Pair("HOME", "/h"))));
  EXPECT_THAT(command.environment, Contains(Pair("OMP_NUM_THREADS", "2")));
  EXPECT_THAT(command.environment, Not(Contains(Key("RANK"))));
  EXPECT_THAT(command.environment, Not(Contains(Key("WORLD_SIZE"))));
}

TEST(WorkerCommandTest, ASecretOfTheUserIsKept) {
  const JobContext job{.id = "j", .secret = Secret("hush")};
  EXPECT_THAT(common_environment({}, job, {{"PEAL_SECRET", "own"}}),
              Contains(Pair("PEAL_SECRET", "own")));
  EXPECT_THAT(common_environment({}, job, {{"PEAL_SECRET_FILE", "/f"}}),
              Not(Contains(Key("PEAL_SECRET"))));
}

}  // namespace
}  // namespace peal::launch::elastic
