#include "peal/launch/agents/file_copy.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::agents {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FileCopyTest : public testing::Test {
 protected:
  FileCopyTest() : from_(temporary_.path() / "from"), to_(temporary_.path() / "to") {
    fs::create_directories(from_ / "inner");
    fs::create_directories(to_);
  }
  void copy(const std::vector<FileToCopy>& files) const {
    FilePartReader reader(files);
    FilePartWriter writer(to_);
    while (const auto part = reader.next()) writer.take(decode_file_part(encode(*part)));
  }

  TemporaryFolder temporary_;
  const fs::path from_;
  const fs::path to_;
};

TEST_F(FileCopyTest, AFolderIsCopiedWithItsBytesAndPermissions) {
  const std::string large(700'000, '\0');
  std::ofstream(from_ / "large", std::ios::binary) << large << "end";
  std::ofstream(from_ / "empty");
  std::ofstream(from_ / "inner/run.sh") << "#!/bin/sh\n";
  fs::permissions(from_ / "inner/run.sh", fs::perms::owner_all);
  fs::create_symlink("large", from_ / "link");
  copy(files_below(from_, "code"));
  EXPECT_EQ(content_of(to_ / "code/large"), large + "end");
  EXPECT_TRUE(fs::exists(to_ / "code/empty"));
  EXPECT_EQ(fs::status(to_ / "code/inner/run.sh").permissions(), fs::perms::owner_all);
  EXPECT_EQ(content_of(to_ / "code/link"), large + "end");
}

TEST_F(FileCopyTest, AFileMayBeCopiedOntoItself) {
  std::ofstream(to_ / "same") << std::string(600'000, 'x');
  copy({{to_ / "same", "same"}});
  EXPECT_EQ(content_of(to_ / "same").size(), 600'000u);
}

TEST_F(FileCopyTest, AnUnfinishedFileLeavesTheOldOneAndNothingElse) {
  std::ofstream(to_ / "a") << "old";
  {
    FilePartWriter writer(to_);
    writer.take({.path = "a", .is_first = true, .permissions = 0600, .bytes = "new"});
  }
  EXPECT_EQ(content_of(to_ / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(to_), fs::directory_iterator()), 1);
}

TEST_F(FileCopyTest, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(usage_error_of([&] { files_below(from_ / "missing", "x"); }),
              HasSubstr("from/missing to the hosts: No such file"));
}

TEST_F(FileCopyTest, APlaceThatCannotBeWrittenIsAnErrorThatNamesIt) {
  std::ofstream(from_ / "a") << "x";
  std::ofstream(to_ / "file") << "x";
  EXPECT_THAT(error_of([&] {
                copy({{from_ / "a", "file/a"}});
              }).what(),
              HasSubstr("to/file/a: Not a directory"));
}

}  // namespace
}  // namespace peal::launch::agents
