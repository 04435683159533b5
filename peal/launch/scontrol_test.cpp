#include "peal/launch/scontrol.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A line as Slurm 22.05 prints it, shortened.
std::string line(const std::string& name, const std::string& comment = "(null)") {
  return "JobId=7 JobName=" + name +
         " UserId=ann(1000) GroupId=ann(1000) Priority=1 Account=(null) JobState=RUNNING "
         "Reason=None Requeue=1 BatchFlag=1 ExitCode=0:0 PreemptTime=None NodeList=n[1-2] "
         "BatchHost=n1 Command=/home/ann/a.sh Comment=" +
         comment + " StdErr=/home/ann/e Power=";
}

TEST(ScontrolTest, FieldsOfALine) {
  EXPECT_EQ(slurm_field(line("mnist"), "JobId"), "7");
  EXPECT_EQ(slurm_field(line("mnist"), "JobName"), "mnist");
  EXPECT_EQ(slurm_field(line("mnist"), "JobState"), "RUNNING");
  EXPECT_EQ(slurm_field(line("mnist"), "NodeList"), "n[1-2]");
  EXPECT_EQ(slurm_field(line("mnist"), "Power"), "");
  EXPECT_EQ(slurm_field(line("mnist"), "Restarts"), "");
  EXPECT_EQ(slurm_field(line("mnist"), "HetJobId"), "");
  EXPECT_EQ(slurm_field("", "JobId"), "");
}

TEST(ScontrolTest, AJobNameIsNotReadAsFields) {
  const std::string named =
      line("x PreemptTime=1 HetJobId=3 ArrayJobId=3 UserId=eve(1) NodeList=n9 JobId=3");
  EXPECT_EQ(slurm_field(named, "JobName"),
            "x PreemptTime=1 HetJobId=3 ArrayJobId=3 UserId=eve(1) NodeList=n9 JobId=3");
  EXPECT_EQ(slurm_field(named, "JobId"), "7");
  EXPECT_EQ(slurm_field(named, "HetJobId"), "");
  EXPECT_EQ(slurm_field(named, "ArrayJobId"), "");
  EXPECT_EQ(slurm_field(named, "PreemptTime"), "None");
  EXPECT_EQ(slurm_field(named, "NodeList"), "n[1-2]");
}

TEST(ScontrolTest, ACommentIsNotReadAsFields) {
  const std::string noted = line("mnist", "HetJobId=3 PreemptTime=1 UserId=eve(1) JobName=x");
  EXPECT_EQ(slurm_field(noted, "HetJobId"), "");
  EXPECT_EQ(slurm_field(noted, "PreemptTime"), "None");
  EXPECT_EQ(slurm_field(noted, "JobName"), "mnist");
}

TEST(ScontrolTest, ALineWithTwoStatesHasNoFields) {
  for (const std::string& text : {line("x JobState=COMPLETED"),
                                  line("x UserId=eve(1) JobState=COMPLETED PreemptTime=1"),
                                  line("mnist", "x JobState=COMPLETED")}) {
    for (const char* name : {"JobId", "JobName", "JobState", "PreemptTime"}) {
      EXPECT_EQ(slurm_field(text, name), "") << text;
    }
  }
}

TEST(ScontrolTest, TheLinesOfAJobAreThoseOfItsComponents) {
  const std::string task = "JobId=7 ArrayJobId=7 ArrayTaskId=2 JobName=x JobState=RUNNING";
  const std::string other = "JobId=8 ArrayJobId=7 ArrayTaskId=1 JobName=x JobState=RUNNING";
  const std::string component = "JobId=9 HetJobId=7 JobName=x JobState=RUNNING";
  EXPECT_THAT(lines_of_job(task + "\n" + other + "\n" + component + "\n", "7"),
              ElementsAre(task, component));
  EXPECT_THAT(lines_of_job(other, "7"), IsEmpty());
  EXPECT_THAT(lines_of_job("", "7"), IsEmpty());
}

TEST(ScontrolTest, ANameOfSeveralLinesMakesNoLineOfAnotherJob) {
  EXPECT_THAT(lines_of_job(line("x\nJobId=8 JobState=RUNNING PreemptTime=1"), "8"), IsEmpty());
}

}  // namespace
}  // namespace peal::launch
