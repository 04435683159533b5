#include "peal/launch/lost_batch_host.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(LostBatchHost, ARunningJobWithoutTheNodeOfItsBatchScriptHasLostIt) {
  const auto lost = [](const std::string& fields) { return lost_batch_host("JobId=7 " + fields); };
  EXPECT_EQ(lost("JobState=RUNNING ReqNodeList=(null) NodeList=n[2-3] BatchHost=n1"), "n1");
  EXPECT_EQ(lost("JobState=RUNNING NodeList=n[1,3] BatchHost=n1"), "");
  EXPECT_EQ(lost("JobState=RUNNING NodeList=n2"), "") << "another component";
  EXPECT_EQ(lost("JobState=RUNNING NodeList=bgl[000x133] BatchHost=n1"), "")
      << "of another job, in a form that peal does not know";
  EXPECT_EQ(lost("JobState=PENDING NodeList= BatchHost=n1"), "");
  EXPECT_EQ(lost("JobState=COMPLETED NodeList=n2 BatchHost=n1"), "");
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

TEST(LostBatchHost, ATaskOfAnArrayStartsAgainWithoutTheOtherTasks) {
  EXPECT_EQ(name_for_requeue("JobId=5 ArrayJobId=5 ArrayTaskId=2 JobName=x JobState=RUNNING"),
            "5_2");
  EXPECT_EQ(name_for_requeue("JobId=7 JobName=x ArrayJobId=5 ArrayTaskId=2 JobState=RUNNING"), "7");
}

TEST(LostBatchHost, TheConfigurationTellsWhenSlurmCountsANodeAsLost) {
  EXPECT_EQ(slurmd_timeout("SlurmctldTimeout        = 120 sec\n"
                           "SlurmdTimeout           = 300 sec\n"),
            std::chrono::seconds(300));
  EXPECT_EQ(slurmd_timeout("SlurmctldTimeout        = 120 sec\n"), std::nullopt);
}

constexpr auto kRunning =
    "JobId=7 JobState=RUNNING Requeue=1 BatchFlag=1 NodeList=n[1-3] BatchHost=n1";
constexpr auto kLost =
    "JobId=7 JobState=RUNNING Requeue=1 BatchFlag=1 NodeList=n[2-3] BatchHost=n1";

/// The agent of a job on n[1-3] that has lost its launcher, and a program `scontrol` that answers
/// one line after the other: "fail", or the text to print.
class LostLauncherTest : public testing::Test {
 protected:
  std::vector<std::string> questions(const std::vector<std::string>& answers,
                                     const std::string& node = "n2") {
    std::ofstream file(folder_.path() / "answers");
    for (const std::string& answer : answers) file << answer << "\n";
    file.close();
    const std::filesystem::path scontrol = folder_.path() / "scontrol";
    std::ofstream(scontrol) << "#!/bin/sh\n"
                               "cd '" +
                                   folder_.path().string() +
                                   "'\n"
                                   "echo \"$*\" >>questions\n"
                                   "answer=$(head -n1 answers)\n"
                                   "[ \"$(wc -l <answers)\" = 1 ] || sed -i 1d answers\n"
                                   "[ \"$answer\" != fail ] || exit 1\n"
                                   "echo \"$answer\"\n";
    std::filesystem::permissions(scontrol, std::filesystem::perms::owner_all);
    const std::string search = folder_.path().string() + ":/usr/bin:/bin";
    const ScopedVariable path("PATH", search);
    requeue_after_lost_batch_host(fixed_environment({{"PATH", search},
                                                     {"SLURM_JOB_ID", "7"},
                                                     {"SLURM_JOB_NODELIST", "n[1-3]"},
                                                     {"SLURMD_NODENAME", node}}),
                                  {.ask_every = std::chrono::milliseconds(1),
                                   .first_answer = first_answer_,
                                   .margin = margin_});
    std::ifstream asked(folder_.path() / "questions");
    std::vector<std::string> lines;
    for (std::string each; std::getline(asked, each);) lines.push_back(each);
    return lines;
  }

  const TemporaryFolder folder_;
  Timeout first_answer_ = std::chrono::minutes(10);
  Timeout margin_ = std::chrono::minutes(10);
};

constexpr auto kAskConfig = "show config";
constexpr auto kAskJob = "show job --oneliner 7";

TEST_F(LostLauncherTest, TheJobStartsAgainWhenSlurmHasNoticedTheLoss) {
  EXPECT_THAT(questions({"SlurmdTimeout = 9 sec", kRunning, kRunning, kLost, "done"}),
              ElementsAre(kAskConfig, kAskJob, kAskJob, kAskJob, "requeue 7"));
}

TEST_F(LostLauncherTest, ASlurmThatDoesNotAnswerIsAskedAgain) {
  EXPECT_THAT(questions({"fail", "", "fail", kRunning, "fail", kLost, "fail", kLost, "done"}),
              ElementsAre(kAskConfig,
                          kAskConfig,
                          kAskJob,
                          kAskJob,
                          kAskJob,
                          kAskJob,
                          "requeue 7",
                          kAskJob,
                          "requeue 7"));
}

TEST_F(LostLauncherTest, TheWaitEndsIfTheJobEndsOrMustNotStartAgain) {
  EXPECT_THAT(questions({"", kRunning, "JobId=7 JobState=COMPLETING"}),
              ElementsAre(kAskConfig, kAskJob, kAskJob));
}

TEST_F(LostLauncherTest, TheWaitEndsIfOnlyTheLauncherWasLost) {
  margin_ = std::chrono::milliseconds(200);
  const auto asked = questions({"SlurmdTimeout = 0 sec", kRunning});
  EXPECT_THAT(asked, Not(Contains("requeue 7")));
  EXPECT_EQ(asked.front(), kAskConfig);
}

TEST_F(LostLauncherTest, TheWaitEndsIfSlurmNeverAnswers) {
  first_answer_ = std::chrono::milliseconds(0);
  EXPECT_THAT(questions({"fail"}), ElementsAre(kAskConfig));
}

TEST_F(LostLauncherTest, OnlyTheFirstOtherNodeAsks) {
  EXPECT_THAT(questions({kLost}, "n3"), IsEmpty());
}

TEST_F(LostLauncherTest, AnotherTaskOfTheArrayIsNotTheJob) {
  const std::string other = kLost;
  const std::string text = "JobId=8 ArrayJobId=7 ArrayTaskId=1" + other.substr(7);
  EXPECT_THAT(questions({"", text, "JobId=7 ArrayJobId=7 ArrayTaskId=2" + other.substr(7), "done"}),
              ElementsAre(kAskConfig, kAskJob, kAskJob, "requeue 7_2"));
}

}  // namespace
}  // namespace peal::launch
