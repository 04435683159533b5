#include "peal/system/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/text_file.h"

namespace {

enum class Links : unsigned char {
  kWork,
  kLoseAnswer,  // link(2) makes the link, and then fails as if the request had been repeated
  kFail,
};
Links links = Links::kWork;
int link_error = 0;  // of Links::kFail

}  // namespace

/// Replaces the system's link.
extern "C" int link(const char* from, const char* to) noexcept {
  if (links == Links::kFail) {
    errno = link_error;
    return -1;
  }
  const int result = ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  if (links == Links::kWork) return result;
  errno = EEXIST;
  return -1;
}

namespace peal {
namespace {

class WholeFileTest : public testing::Test {
 protected:
  WholeFileTest() { std::filesystem::create_directory(folder_); }
  ~WholeFileTest() override {
    links = Links::kWork;
    std::filesystem::remove_all(folder_);
  }

  /// Of all files in the folder.
  std::vector<std::string> texts() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      found.push_back(read_text_file(entry.path()));
    }
    return found;
  }

  const std::filesystem::path folder_ =
      testing::TempDir() + "peal_whole_file_" + std::to_string(::getpid());
  const std::string path_ = folder_ / "file";
};

using Texts = std::vector<std::string>;

TEST_F(WholeFileTest, ALaterTextReplacesAnEarlierOne) {
  write_whole_file(path_, "one");
  write_whole_file(path_, "two");
  EXPECT_EQ(texts(), Texts{"two"});
}

TEST_F(WholeFileTest, OnlyTheFirstTextIsWritten) {
  EXPECT_TRUE(write_first_whole_file(path_, "one"));
  EXPECT_FALSE(write_first_whole_file(path_, "two"));
  EXPECT_EQ(texts(), Texts{"one"});
}

TEST_F(WholeFileTest, OnlyTheFirstTextIsWrittenOnAFileSystemWithoutLinks) {
  links = Links::kFail;
  for (const int error : {EPERM, EOPNOTSUPP, ENOSYS}) {
    link_error = error;
    EXPECT_TRUE(write_first_whole_file(path_, "one")) << error;
    EXPECT_FALSE(write_first_whole_file(path_, "two")) << error;
    EXPECT_EQ(texts(), Texts{"one"}) << error;
    ::unlink(path_.c_str());
  }
}

TEST_F(WholeFileTest, ALinkWhoseAnswerWasLostCounts) {
  links = Links::kLoseAnswer;
  EXPECT_TRUE(write_first_whole_file(path_, "one"));
  EXPECT_FALSE(write_first_whole_file(path_, "two"));
  EXPECT_EQ(texts(), Texts{"one"});
}

TEST_F(WholeFileTest, AnyOtherFailureOfALinkIsAnError) {
  links = Links::kFail;
  link_error = EDQUOT;
  EXPECT_THROW(write_first_whole_file(path_, "one"), Error);
  EXPECT_EQ(texts(), Texts{});
}

}  // namespace
}  // namespace peal
