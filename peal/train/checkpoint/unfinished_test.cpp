#include "peal/train/checkpoint/unfinished.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::thrown_text;
using Kind = Unfinished::Kind;

class UnfinishedTest : public ::testing::TestWithParam<Kind> {
 protected:
  /// Puts a text into the unfinished file, or into a file of the unfinished folder.
  static void write(const Unfinished& unfinished, const std::string& text) {
    std::ofstream(content_of(unfinished.path())) << text;
  }

  static std::string read(const fs::path& path) {
    std::ifstream file(content_of(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static fs::path content_of(const fs::path& path) {
    return GetParam() == Kind::kFolder ? path / "content" : path;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  TemporaryFolder folder_;
  fs::path target_ = folder_.path() / "target";
};

TEST_P(UnfinishedTest, AppearsWhenItIsPublished) {
  {
    Unfinished unfinished(target_, GetParam());
    write(unfinished, "new");
    EXPECT_FALSE(fs::exists(target_));
    EXPECT_THAT(unfinished.path().filename(), StartsWith("target.unfinished-"));
    unfinished.publish();
  }
  EXPECT_EQ(read(target_), "new");
  EXPECT_THAT(names(), ElementsAre("target"));
}

TEST_P(UnfinishedTest, ReplacesTheEarlierOne) {
  for (const std::string text : {"first", "second"}) {
    Unfinished unfinished(target_, GetParam());
    write(unfinished, text);
    unfinished.publish();
  }
  EXPECT_EQ(read(target_), "second");
  EXPECT_THAT(names(), ElementsAre("target"));
}

TEST_P(UnfinishedTest, LeavesNothingWithoutPublication) {
  { Unfinished(target_, GetParam()); }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_P(UnfinishedTest, OnlyLeftoversOfEndedProcessesAreRemoved) {
  const Unfinished running(target_, GetParam());
  const fs::path leftover = folder_.path() / "target.unfinished-abcdefgh";
  if (GetParam() == Kind::kFolder) fs::create_directory(leftover);
  std::ofstream(content_of(leftover)) << "killed";
  std::ofstream(folder_.path() / "other.unfinished-abcdefgh") << "of another target";
  remove_unfinished(folder_.path(), "target");
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_TRUE(fs::exists(running.path()));
  EXPECT_TRUE(fs::exists(folder_.path() / "other.unfinished-abcdefgh"));
}

TEST_P(UnfinishedTest, RemovalLeavesNothing) {
  Unfinished unfinished(target_, GetParam());
  write(unfinished, "old");
  unfinished.publish();
  remove_at_once(target_);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_P(UnfinishedTest, ErrorsNameThePath) {
  const fs::path missing = folder_.path() / "missing" / "target";
  EXPECT_THAT(thrown_text([&] { Unfinished(missing, GetParam()); }), HasSubstr(missing.string()));
  EXPECT_THAT(thrown_text([&] { remove_at_once(missing); }), HasSubstr(missing.string()));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         UnfinishedTest,
                         ::testing::Values(Kind::kFile, Kind::kFolder),
                         [](const auto& kind) {
                           return kind.param == Kind::kFile ? "File" : "Folder";
                         });

}  // namespace
}  // namespace peal::train
