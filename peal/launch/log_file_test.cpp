#include "peal/launch/log_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/own_file.h"
#include "peal/system/private_folder.h"

namespace peal::launch {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kTooLarge = "peal: output is missing here: File too large\n";

/// A limit for the size of files, like `ulimit -f`, whose signal is ignored.
class FileSizeLimit final {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = ::signal(SIGXFSZ, SIG_IGN);
};

class LogFileTest : public testing::Test {
 protected:
  const PrivateFolder folder_{"peal-test."};
  const std::string path_ = folder_.path() / "rank-0.out";
};

TEST_F(LogFileTest, TheLogHoldsEveryByteAndIsPrivate) {
  LogFile log(path_);
  log.append("one\n");
  log.append(std::string("two\r\0", 5));
  log.close();
  EXPECT_EQ(read_own_file(path_), std::string("one\ntwo\r\0", 9));
  EXPECT_EQ(log.lost().error, 0);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(LogFileTest, ALinkOrAPipeInItsPlaceIsKeptAndNamedInTheError) {
  const std::string precious = folder_.path() / "precious";
  std::ofstream(precious) << "precious";
  std::filesystem::create_symlink(precious, path_);
  EXPECT_THROW(LogFile{path_}, Error);
  EXPECT_EQ(read_own_file(precious), "precious");
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  try {
    LogFile log(path_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.message()), HasSubstr(path_));
  }
}

TEST_F(LogFileTest, AtTheLimitTheLogEndsWithWholeLinesAndANote) {
  LogFile log(path_);
  {
    const FileSizeLimit limit(200);
    for (int i = 0; i < 40; ++i) log.append("line " + std::to_string(10 + i) + "\n");
    log.close();
  }
  const std::string text = read_own_file(path_);
  EXPECT_LE(text.size(), 200U);
  EXPECT_THAT(text, StartsWith("line 10\nline 11\n"));
  EXPECT_THAT(text, EndsWith("\n" + std::string(kTooLarge)));
  const std::size_t kept = text.size() - std::string_view(kTooLarge).size();
  EXPECT_EQ(kept % 8, 0U) << text;
  EXPECT_EQ(log.lost().error, EFBIG);
  EXPECT_EQ(log.lost().where, path_);
  EXPECT_EQ(log.lost().bytes, 40 * 8 - kept);
}

TEST_F(LogFileTest, TheLogContinuesAfterTheGapWhenThereIsRoom) {
  LogFile log(path_);
  {
    const FileSizeLimit limit(100);
    log.append(std::string(80, 'x') + "\n");
    log.append(std::string(80, 'y') + "\n");
    log.append(std::string(80, 'z') + "\n");
  }
  log.append("after\n");
  log.close();
  const std::string text = read_own_file(path_);
  EXPECT_THAT(text, EndsWith(std::string(kTooLarge) + "after\n"));
  EXPECT_EQ(text.find(kTooLarge), text.rfind(kTooLarge));
}

TEST_F(LogFileTest, ALongLineIsCutAndTheNoteBeginsANewLine) {
  LogFile log(path_);
  {
    const FileSizeLimit limit(6000);
    log.append(std::string(7000, 'x'));
    log.close();
  }
  EXPECT_THAT(read_own_file(path_), EndsWith("x\n" + std::string(kTooLarge)));
}

TEST_F(LogFileTest, OnAFullDiskTheNoteReplacesTheLastLines) {
  const std::string disk = folder_.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) {
    GTEST_SKIP() << "a small file system cannot be mounted here";
  }
  LogFile log(disk + "/rank-0.out");
  for (int i = 0; i < 10'000; ++i) log.append("line " + std::to_string(10'000 + i) + "\n");
  log.close();
  const std::string text = read_own_file(disk + "/rank-0.out");
  ::umount2(disk.c_str(), MNT_DETACH);
  EXPECT_THAT(text, EndsWith("\npeal: output is missing here: No space left on device\n"));
  EXPECT_THAT(text, StartsWith("line 10000\n"));
  EXPECT_EQ(log.lost().error, ENOSPC);
}

}  // namespace
}  // namespace peal::launch
