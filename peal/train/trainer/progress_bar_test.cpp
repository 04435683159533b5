#include "peal/train/trainer/progress_bar.h"

#include <csignal>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::train {
namespace {

using ::testing::HasSubstr;

TEST(ProgressBarTest, RankZeroWritesARowForEachEpochAndOtherRanksNothing) {
  std::ostringstream zero, one;
  for (const Rank rank : {0, 1}) {
    ProgressBar bar(rank == 0 ? zero : one, rank, 3, /*columns=*/0);
    bar.step({.step = 1, .step_in_epoch = 1, .steps_in_epoch = 4, .loss = 2});
    bar.end_epoch({.epoch = 1,
                   .metrics = {{"accuracy", 0.75}, {"loss", 0.5}},
                   .duration = std::chrono::milliseconds(1500)});
  }
  EXPECT_EQ(zero.str(), "epoch 2/3  accuracy 0.7500  loss 0.5000  1.5 s\n");
  EXPECT_EQ(one.str(), "");
}

TEST(ProgressBarTest, ATerminalShowsABar) {
  std::ostringstream out;
  ProgressBar bar(out, 0, 3, /*columns=*/84);
  bar.step({.epoch = 0, .step_in_epoch = 1, .steps_in_epoch = 4, .loss = 2});
  EXPECT_THAT(out.str(), HasSubstr("epoch 1/3 [==========" + std::string(30, ' ') + "] step 1"));
}

/// What rank 0 writes into a file at the start of a run of 3 epochs.
std::string text_of(const StartReport& report) {
  std::ostringstream zero, one;
  ProgressBar(zero, 0, 3, /*columns=*/0).start(report);
  ProgressBar(one, 1, 3, /*columns=*/0).start(report);
  EXPECT_EQ(one.str(), "");
  return zero.str();
}

std::string text_of(const RunReport& report) {
  std::ostringstream zero, one;
  ProgressBar(zero, 0, 3, /*columns=*/0).end(report);
  ProgressBar(one, 1, 3, /*columns=*/0).end(report);
  EXPECT_EQ(one.str(), "");
  return zero.str();
}

TEST(ProgressBarTest, TheStartOfANewRunIsSilent) { EXPECT_EQ(text_of(StartReport{}), ""); }

TEST(ProgressBarTest, ARunThatContinuesNamesItsCheckpoint) {
  EXPECT_EQ(text_of(StartReport{.epoch = 1, .step = 7, .checkpoint = "runs/step-00000007"}),
            "Training continues after step 7 in runs/step-00000007\n");
  EXPECT_EQ(text_of(StartReport{.epoch = 1, .step = 7}), "Training continues after step 7\n");
}

TEST(ProgressBarTest, ACompleteRunSaysHowToTrainLonger) {
  EXPECT_EQ(text_of(StartReport{.epoch = 3, .step = 12, .checkpoint = "runs/step-00000012"}),
            "Training is complete already, after step 12 in runs/step-00000012. To train longer, "
            "increase the number of epochs, which is 3.\n");
}

TEST(ProgressBarTest, AnInterruptedRunNamesTheSignalAndTheCheckpoint) {
  RunReport report{.end = RunEnd::kStopped,
                   .signal = SIGINT,
                   .epoch = 1,
                   .steps = 7,
                   .checkpoint = "runs/step-00000007"};
  EXPECT_EQ(text_of(report),
            "Interrupted by SIGINT in epoch 2 after step 7. The checkpoint is in "
            "runs/step-00000007; run the same command again to continue.\n");
  report.checkpoint.clear();
  report.signal = 0;
  EXPECT_EQ(text_of(report),
            "Stopped in epoch 2 after step 7. No checkpoint was saved. To continue after a stop, "
            "set a folder for checkpoints.\n");
  EXPECT_EQ(text_of(RunReport{.end = RunEnd::kComplete}), "");
}

TEST(ProgressBarTest, OnATerminalALineReplacesTheBar) {
  std::ostringstream out;
  ProgressBar bar(out, 0, 3, /*columns=*/84);
  bar.end({.end = RunEnd::kStopped, .steps = 7});
  EXPECT_THAT(out.str(), ::testing::StartsWith("\rStopped"));
}

}  // namespace
}  // namespace peal::train
