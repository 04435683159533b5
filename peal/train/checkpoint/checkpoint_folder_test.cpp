#include "peal/train/checkpoint/checkpoint_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::on_ranks;
using testing::TemporaryFolder;
using testing::thrown_text;

TEST(CheckpointFolder, NamesSortLikeSteps) {
  EXPECT_EQ(checkpoint_name(0), "step-00000000");
  EXPECT_EQ(checkpoint_name(120), "step-00000120");
  EXPECT_EQ(checkpoint_name(1234567890), "step-1234567890");
  EXPECT_THAT(thrown_text([] { checkpoint_name(-1); }), HasSubstr("the negative step -1"));
}

TEST(CheckpointFolder, OnlyCompleteCheckpointsCount) {
  const TemporaryFolder folder;
  EXPECT_EQ(latest_checkpoint(folder.path()), std::nullopt);
  EXPECT_EQ(latest_checkpoint(folder.path() / "missing"), std::nullopt);
  for (const char* name : {"step-00000009",
                           "step-00000120",
                           "step-00000130.unfinished-abcdefgh",
                           "step-140",
                           "step-000000150",
                           "step--0000160",
                           "step-0000017x",
                           "other"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  std::ofstream(folder.path() / "step-00000200") << "a file";
  EXPECT_EQ(latest_checkpoint(folder.path()), folder.path() / "step-00000120");
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 2u);
  EXPECT_EQ(list_checkpoints(folder.path()).at(9), folder.path() / "step-00000009");
}

TEST(CheckpointFolder, AllRanksGetTheOneThatRankZeroFinds) {
  const TemporaryFolder with;
  const TemporaryFolder without;
  std::filesystem::create_directory(with.path() / "step-00000001");
  on_ranks(2, [&](const ProcessGroupPtr& group) {
    const auto& folder = group->rank() == 0 ? with.path() : without.path();
    EXPECT_EQ(latest_checkpoint(*group, folder), folder / "step-00000001");
    const auto& other = group->rank() == 1 ? with.path() : without.path();
    EXPECT_EQ(latest_checkpoint(*group, other), std::nullopt);
    return true;
  });
}

TEST(CheckpointFolder, AFolderThatCannotBeReadIsAnError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THAT(thrown_text([&] { latest_checkpoint(folder.path() / "file"); }),
              HasSubstr("cannot read " + (folder.path() / "file").string()));
}

}  // namespace
}  // namespace peal::train
