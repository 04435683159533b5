#include "peal/launch/elastic/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/launch/elastic/worker_command.h"

namespace peal::launch::elastic {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(DiscoveryTest, EachLineIsAHostWithItsSlots) {
  EXPECT_THAT(parse_hosts("a:2\nb\n c:1 \r\n\n# comment\nd:3 # why\n[::1]:4\nfe80::1\ne:0", 8),
              ElementsAre(FoundHost{"a", 2},
                          FoundHost{"b", 8},
                          FoundHost{"c", 1},
                          FoundHost{"d", 3},
                          FoundHost{"::1", 4},
                          FoundHost{"fe80::1", 8},
                          FoundHost{"e", 0}));
  EXPECT_THAT(parse_hosts("", 1), ElementsAre());
}

TEST(DiscoveryTest, TheLastLineOfAHostCounts) {
  EXPECT_THAT(parse_hosts("a:2\nb:1\na:3", 1), ElementsAre(FoundHost{"a", 3}, FoundHost{"b", 1}));
}

TEST(DiscoveryTest, AnyOtherLineIsAnErrorThatQuotesIt) {
  for (const char* const line : {"a:", "a:x", ":2", "a b", "a:-1", "a:2:x y", "[]:2 x"}) {
    try {
      parse_hosts(std::string("ok:1\n") + line, 1);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(std::string(error.message()), HasSubstr(line));
    }
  }
}

TEST(DiscoveryTest, NamesAndLoopbackAddressesMeanThisMachine) {
  for (const char* const host : {"localhost", "127.0.0.1", "127.0.0.2", "::1"}) {
    EXPECT_TRUE(is_this_machine(host)) << host;
  }
  EXPECT_FALSE(is_this_machine("192.0.2.1"));  // reserved for documentation
}

TEST(ElasticOptionsTest, WrongOptionsAreRejected) {
  const ElasticOptions good{.discovery_script = "hosts"};
  EXPECT_NO_THROW(check(good));
  std::vector<ElasticOptions> all(6, good);
  all[0].discovery_script = "";
  all[1].min_ranks = 0;
  all[2].min_ranks = 3;
  all[2].max_ranks = 2;
  all[3].slots = 0;
  all[4].timeout = Timeout(0);
  all[5].cooldown = Cooldown{std::chrono::seconds(5), std::chrono::seconds(4)};
  for (const ElasticOptions& bad : all) EXPECT_THROW(check(bad), Error);
}

TEST(WorkerCommandTest, AWorkerHasItsIdentityAndNoRank) {
  LaunchOptions options;
  options.command = {"train", "--x"};
  options.variables = {{"ADDED", "1"}};
  const Variables inherited = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"HOME", "/h"}};
  const Job job{.id = "j", .secret = Secret("hush")};
  WorkerKit kit;
  kit.program = "/bin/train";
  kit.common = common_environment(options, job, inherited);
  kit.driver = "127.0.0.1:5";
  const Worker worker{.number = 6, .host = "127.0.0.1", .slot = 1};
  const RankCommand command = worker_command(options, kit, worker, 9, {.cpus = {4}, .threads = 2});
  EXPECT_EQ(command.rank, 9);
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
  const Job job{.id = "j", .secret = Secret("hush")};
  EXPECT_THAT(common_environment({}, job, {{"PEAL_SECRET", "own"}}),
              Contains(Pair("PEAL_SECRET", "own")));
  EXPECT_THAT(common_environment({}, job, {{"PEAL_SECRET_FILE", "/f"}}),
              Not(Contains(Key("PEAL_SECRET"))));
}

}  // namespace
}  // namespace peal::launch::elastic
