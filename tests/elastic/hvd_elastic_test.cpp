// Elastic training with Horovod's API in C++: workers are killed, hosts come and go.
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/elastic_job.h"

namespace peal::testing {
namespace {

using ::testing::HasSubstr;

TEST(HvdElastic, TrainsToTheEndWithoutAChange) {
  ElasticJob job;
  job.set_hosts("localhost:2");
  job.start({"40", "1"});
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("] ok"));
}

TEST(HvdElastic, ContinuesFromTheLastCommitAfterAKill) {
  ElasticJob job;
  job.set_hosts("localhost:2 127.0.0.1:1");
  job.start({"900", "10"}, {.cooldown = 1});
  ASSERT_TRUE(job.wait_for_round(1, 3));
  ::kill(job.pid_of(1, 0), SIGKILL);
  ASSERT_TRUE(job.wait_for_round(2, 2));
  ASSERT_TRUE(job.wait_for_round(3, 3));
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("] ok"));
}

TEST(HvdElastic, TakesInAddedHostsAndLeavesRemovedOnes) {
  ElasticJob job;
  job.set_hosts("localhost:1");
  job.start({"400", "10"});
  ASSERT_TRUE(job.wait_for_round(1, 1));
  job.set_hosts("localhost:1 127.0.0.1:1");
  ASSERT_TRUE(job.wait_for_round(2, 2));
  job.set_hosts("127.0.0.1:1");
  ASSERT_TRUE(job.wait_for_round(3, 1));
  const auto ended = job.wait();
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("] ok"));
  EXPECT_THAT(ended.output, HasSubstr("has been removed from elastic job"));
}

}  // namespace
}  // namespace peal::testing
