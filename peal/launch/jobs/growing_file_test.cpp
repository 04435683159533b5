#include "peal/launch/jobs/growing_file.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/temporary_folder.h"

namespace peal::launch::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GrowingFileTest : public testing::Test {
 protected:
  void append(const std::string& text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }
  void overwrite(const std::string& text) const {
    std::ofstream(path_, std::ios::trunc | std::ios::binary) << text;
  }

  /// The lines that one look finds.
  std::vector<std::string> look() {
    lines_.clear();
    file_.read_new();
    return lines_;
  }
  std::vector<std::string> end() {
    lines_.clear();
    file_.finish();
    return lines_;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() / "rank-0.out";
  std::vector<std::string> lines_;
  GrowingFile file_{path_, [this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(GrowingFileTest, AMissingFileHasNoLinesUntilItExists) {
  EXPECT_FALSE(file_.has_grown());
  EXPECT_FALSE(file_.read_new());
  append("a\n");
  EXPECT_TRUE(file_.has_grown());
  EXPECT_THAT(look(), ElementsAre("a"));
  EXPECT_FALSE(file_.has_grown());
}

TEST_F(GrowingFileTest, ALineIsPassedOnWhenItIsWhole) {
  append("a\nbe");
  EXPECT_THAT(look(), ElementsAre("a"));
  append("g");
  EXPECT_THAT(look(), IsEmpty());
  append("in\n\nc\n");
  EXPECT_THAT(look(), ElementsAre("begin", "", "c"));
}

TEST_F(GrowingFileTest, TheEndPassesOnAnUnfinishedLine) {
  append("a\nb");
  look();
  EXPECT_THAT(end(), ElementsAre("b"));
  EXPECT_THAT(end(), IsEmpty());
}

TEST_F(GrowingFileTest, LongLinesStayWhole) {
  const std::string line(300'000, 'x');
  for (std::size_t at = 0; at < line.size(); at += 50'000) {
    append(line.substr(at, 50'000));
    EXPECT_THAT(look(), IsEmpty());
  }
  append("\n");
  EXPECT_THAT(look(), ElementsAre(line));
}

TEST_F(GrowingFileTest, AnEmptiedFileIsReadFromItsBeginning) {
  append("a\nb\nc");
  look();
  overwrite("");
  EXPECT_TRUE(file_.has_grown());
  EXPECT_THAT(look(), ElementsAre("c"));  // the line that will never be completed
  append("d\n");
  EXPECT_THAT(look(), ElementsAre("d"));
}

TEST_F(GrowingFileTest, AMuchShorterFileIsReadFromItsBeginning) {
  append(std::string(20'000, 'x') + "\n");
  look();
  overwrite("a\nb\n");
  EXPECT_THAT(look(), ElementsAre("a", "b"));
}

TEST_F(GrowingFileTest, ANoteOverTheEndOfALogDoesNotRepeatTheLog) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a line of a log\n";
  append(text + "and a longer line at the end, which the note replaces\n");
  look();
  overwrite(text + "peal: output is missing here\n");
  EXPECT_THAT(look(), ElementsAre("peal: output is missing here"));
  append("more\n");
  EXPECT_THAT(look(), ElementsAre("more"));
}

TEST_F(GrowingFileTest, AReplacedFileIsReadFromItsBeginning) {
  append("a\nb\n");
  look();
  std::ofstream(path_ + ".new") << "c\nd\n";  // of the same size
  std::filesystem::rename(path_ + ".new", path_);
  EXPECT_TRUE(file_.has_grown());
  EXPECT_THAT(look(), ElementsAre("c", "d"));
}

TEST_F(GrowingFileTest, AFileThatIsRemovedMeanwhileIsNoError) {
  append("a\n");
  look();
  std::filesystem::remove(path_);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(GrowingFileTest, AFileThatCannotBeALogIsAnErrorThatNamesIt) {
  std::filesystem::create_directory(path_);
  const Error error = error_of([&] { file_.read_new(); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr(path_ + " cannot be read: it is not a regular file"));
}

}  // namespace
}  // namespace peal::launch::jobs
