#include "peal/launch/lost_batch_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

TEST(LostBatchHost, ARunningJobWithoutTheNodeOfItsBatchScriptHasLostIt) {
  EXPECT_EQ(lost_batch_host("JobState=RUNNING ReqNodeList=(null) NodeList=n[2-3] BatchHost=n1"),
            "n1");
  EXPECT_EQ(lost_batch_host("JobState=RUNNING NodeList=n[1,3] BatchHost=n1"), "");
  EXPECT_EQ(lost_batch_host("JobState=RUNNING NodeList=n2"), "") << "another component";
  EXPECT_EQ(lost_batch_host("JobState=RUNNING NodeList=bgl[000x133] BatchHost=n1"), "")
      << "of another job, in a form that peal does not know";
  EXPECT_EQ(lost_batch_host("JobState=PENDING NodeList= BatchHost=n1"), "");
  EXPECT_EQ(lost_batch_host("JobState=COMPLETED NodeList=n2 BatchHost=n1"), "");
}

std::string line(const std::string& more = "BatchFlag=1 Requeue=1 BatchHost=n1") {
  return "JobId=7 JobState=RUNNING NodeList=n[1-3] " + more;
}

TEST(LostBatchHost, OneNodeStartsTheJobAgain) {
  EXPECT_TRUE(may_requeue(line(), "n[1-3]", "n2"));
  EXPECT_FALSE(may_requeue(line(), "n[1-3]", "n3"));
  EXPECT_FALSE(may_requeue(line(), "n[1-3]", "n1"));
  EXPECT_TRUE(may_requeue(line("BatchFlag=1 Requeue=1 BatchHost=n3"), "n[1-3]", "n1"));
  EXPECT_FALSE(may_requeue(line(), "n1", "n1")) << "Slurm itself starts a job of one node again";
}

TEST(LostBatchHost, NoOtherJobIsStartedAgain) {
  EXPECT_FALSE(may_requeue(line("BatchFlag=0 Requeue=1 BatchHost=n1"), "n[1-3]", "n2")) << "salloc";
  EXPECT_FALSE(may_requeue(line("BatchFlag=1 Requeue=0 BatchHost=n1"), "n[1-3]", "n2"));
  EXPECT_FALSE(may_requeue("HetJobId=7 " + line(), "n[1-3]", "n2"));
  EXPECT_FALSE(may_requeue(line(), "bgl[000x133]", "n2"));
}

}  // namespace
}  // namespace peal::launch
