#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "peal/train/checkpoint/save_checkpoint.h"
#include "peal/train/checkpoint/testing/trained.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::on_ranks;
using ::testing::StartsWith;
using testing::TemporaryFolder;

/// What each of three ranks says about its folder: rank 1 about `other`, and the others about
/// `folder`.
std::vector<std::string> prepared(const fs::path& folder, const fs::path& other) {
  return on_ranks(3, [&](const ProcessGroupPtr& group) {
    return testing::thrown_text(
        [&] { prepare_checkpoint_folder(*group, group->rank() == 1 ? other : folder); });
  });
}

TEST(PrepareFolder, MakesTheFolderAndLeavesNothingInIt) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "runs" / "a";
  EXPECT_THAT(prepared(folder, folder), Each("no error"));
  EXPECT_THAT(prepared(folder, folder), Each("no error")) << "it exists now";
  EXPECT_THAT(testing::names_in(folder), ::testing::IsEmpty());
}

TEST(PrepareFolder, AFolderThatCannotBeMadeIsAnErrorOnEveryRank) {
  const TemporaryFolder temporary;
  const fs::path file = temporary.path() / "file";
  std::ofstream(file) << "no folder";
  EXPECT_THAT(prepared(file / "runs", file / "runs"),
              Each(AllOf(StartsWith("resource: rank 0: checkpoints cannot be saved in " +
                                    (file / "runs").string()),
                         HasSubstr("Choose a folder that all ranks share and can write"))));
}

TEST(PrepareFolder, AFolderThatCannotBeWrittenIsAnErrorOnEveryRank) {
  EXPECT_THAT(prepared("/proc", "/proc"),  // where nobody can make a file, also not root
              Each(StartsWith("resource: rank 0: checkpoints cannot be saved in /proc: ")));
}

TEST(PrepareFolder, RanksThatDoNotShareTheFolderFailTogether) {
  const TemporaryFolder one, other;
  EXPECT_THAT(
      prepared(one.path(), other.path()),
      Each(AllOf(StartsWith("usage: rank 1: " + other.path().string()),
                 EndsWith("does not exist here: all ranks need a folder that they share"))));
  EXPECT_THAT(testing::names_in(one.path()), ::testing::IsEmpty());
}

}  // namespace
}  // namespace peal::train
