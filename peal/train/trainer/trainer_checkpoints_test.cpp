// What a Trainer says about its checkpoints: before the first step, and at the end.
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/train/testing/ranks.h"
#include "peal/train/trainer/progress_bar.h"
#include "peal/train/trainer/testing/circle.h"
#include "peal/train/trainer/trainer.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Circle;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestRun;

/// The error of each of two ranks.
std::vector<std::string> errors_of(const TestRun& run) {
  const auto nets = testing::replicas<Circle>(2);
  return testing::on_ranks(2, [&](const ProcessGroupPtr& group) {
    return testing::thrown_text(
        [&] { testing::train(group, nets[static_cast<std::size_t>(group->rank())], run); });
  });
}

/// What the progress bar of two ranks writes, without the rows of the epochs.
std::string messages_of(const TestRun& run) {
  std::ostringstream out;
  TestRun shown = run;
  shown.prepare = [&](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
    if (run.prepare) run.prepare(trainer, group);
    if (group->rank() != 0) return;
    const auto bar = std::make_shared<ProgressBar>(out, 0, run.options.epochs, /*columns=*/0);
    trainer.on_start([bar](const StartReport& report) { bar->start(report); });
    trainer.on_end([bar](const RunReport& report) { bar->end(report); });
  };
  testing::train_on(2, shown);
  return out.str();
}

TEST(TrainerCheckpointsTest, AFolderThatCannotBeMadeIsAnErrorBeforeTheFirstStep) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  const TestRun run{.options = {.checkpoints = folder.path() / "file" / "runs"},
                    .prepare = [](Trainer<Circle>& trainer, const ProcessGroupPtr&) {
                      trainer.on_step([](const StepReport&) { ADD_FAILURE() << "a step"; });
                    }};
  EXPECT_THAT(errors_of(run),
              Each(AllOf(StartsWith("resource: rank 0: checkpoints cannot be saved in "),
                         HasSubstr("Choose a folder"))));
}

TEST(TrainerCheckpointsTest, ADamagedLastCheckpointIsAnErrorAndNoOlderOneIsTakenSilently) {
  const testing::TemporaryFolder folder;
  TestRun run{.options = {.epochs = 2, .checkpoints = folder.path(), .save_every = 3}};
  testing::train_on(2, run);  // 8 steps
  const fs::path older = folder.path() / "step-00000006", last = folder.path() / "step-00000008";
  fs::resize_file(last / "optimizer.safetensors", 100);
  EXPECT_THAT(
      errors_of(run),
      Each(AllOf(StartsWith("resource: rank 0: " + (last / "optimizer.safetensors").string()),
                 HasSubstr("remove " + last.string() + " to continue from " + older.string()))));
  fs::remove_all(last);
  EXPECT_EQ(messages_of(run), "Training continues after step 6 in " + older.string() + "\n");
}

TEST(TrainerCheckpointsTest, TheBarReportsAStopAContinuationAndACompleteRun) {
  const testing::TemporaryFolder folder;
  const fs::path sixth = folder.path() / "step-00000006", last = folder.path() / "step-00000008";
  TestRun run{.options = {.epochs = 2, .checkpoints = folder.path()},
              .prepare = testing::stop_after_step_5};
  EXPECT_EQ(messages_of(run),
            "Stopped in epoch 2 after step 6. The checkpoint is in " + sixth.string() +
                "; run the same command again to continue.\n");
  run.prepare = {};
  EXPECT_EQ(messages_of(run), "Training continues after step 6 in " + sixth.string() + "\n");
  EXPECT_EQ(messages_of(run),
            "Training is complete already, after step 8 in " + last.string() +
                ". To train longer, increase the number of epochs, which is 2.\n");
}

TEST(TrainerCheckpointsTest, AfterARequestedStopTheReportHasNoSignalAndExitCode0) {
  const auto results =
      testing::train_on(2, {.options = {.epochs = 2}, .prepare = testing::stop_after_step_5});
  for (const auto& one : results) {
    EXPECT_EQ(one.report.end, RunEnd::kStopped);
    EXPECT_EQ(one.report.exit_code(), 0);
    EXPECT_EQ(one.report.checkpoint, "") << "no folder is set";
  }
}

TEST(TrainerCheckpointsTest, ShowConnectsTheBarToEveryReportOfATrainer) {
  const testing::TemporaryFolder folder;
  std::ostringstream out;
  ProgressBar bar(out, 0, 2, /*columns=*/84);
  TestRun run{.options = {.epochs = 2, .checkpoints = folder.path()}};
  const auto show = [&bar](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
    if (group->rank() == 0) bar.show(trainer);
  };
  run.prepare = [show](Trainer<Circle>& trainer, const ProcessGroupPtr& group) {
    show(trainer, group);
    testing::stop_after_step_5(trainer, group);
  };
  testing::train_on(2, run);
  EXPECT_THAT(out.str(), HasSubstr("] step 1  loss ")) << "on_step";
  EXPECT_THAT(out.str(), HasSubstr("\repoch 1/2  loss ")) << "on_epoch";
  EXPECT_THAT(out.str(), HasSubstr("\rStopped in epoch 2")) << "on_end";
  out.str("");
  run.prepare = show;
  testing::train_on(2, run);
  EXPECT_THAT(out.str(), StartsWith("\rTraining continues after step 6")) << "on_start";
}

}  // namespace
}  // namespace peal::train
