#include "peal/system/own_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

namespace peal {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

class OwnFileTest : public testing::Test {
 protected:
  std::string reading_fails() const {
    try {
      read_own_file(path_);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.message());
    }
  }
  std::string making_fails() const {
    try {
      make_own_file(path_);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kResource);
      return std::string(error.message());
    }
  }

  const PrivateFolder folder_{"peal-test."};
  const std::string path_ = folder_.path() / "file";
};

TEST_F(OwnFileTest, ANewFileIsPrivateUnderAnyMask) {
  const mode_t before = ::umask(0);
  write_all(make_own_file(path_), "text", path_);
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(read_own_file(path_), "text");
}

TEST_F(OwnFileTest, AnEarlierFileIsReplacedAndNotOverwritten) {
  std::ofstream(path_) << "a longer text";
  const std::string other_name = folder_.path() / "other name";
  std::filesystem::create_hard_link(path_, other_name);
  write_all(make_own_file(path_), "short", path_);
  EXPECT_EQ(read_own_file(path_), "short");
  EXPECT_EQ(read_own_file(other_name), "a longer text");
}

TEST_F(OwnFileTest, ALinkIsNeitherFollowedNorReplaced) {
  const std::string target = folder_.path() / "target";
  std::ofstream(target) << "precious";
  std::filesystem::create_symlink(target, path_);
  EXPECT_THAT(making_fails(), HasSubstr("file exists and is not a regular file of this user"));
  EXPECT_EQ(reading_fails(), "cannot be read: it is a link");
  remove_own_file(path_);
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(read_own_file(target), "precious");
}

TEST_F(OwnFileTest, APipeIsAnErrorAtOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(making_fails(), HasSubstr("not a regular file"));
  EXPECT_EQ(reading_fails(), "cannot be read: it is not a regular file");
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OwnFileTest, AFileOfAnotherUserIsNotReadReplacedOrRemoved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  std::ofstream(path_) << "forged";
  ASSERT_EQ(::chown(path_.c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(reading_fails(), "cannot be read: it belongs to another user");
  EXPECT_THAT(making_fails(), HasSubstr("not a regular file of this user"));
  remove_own_file(path_);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(OwnFileTest, AMissingOrTooLongFileIsAnError) {
  EXPECT_EQ(reading_fails(), "cannot be read: No such file or directory");
  std::ofstream(path_) << "more than four bytes";
  EXPECT_THROW(read_own_file(path_, 4_B), Error);
}

}  // namespace
}  // namespace peal
