#include "peal/observe/end_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "peal/observe/testing/flight_files.h"
#include "peal/observe/testing/flights.h"
#include "peal/system/fd.h"

namespace peal::observe {
namespace {

using EndState = RankEnd::State;
using std::chrono::milliseconds;

constexpr const char* kJob = "test";
const RankEnd kKilled = end_of(2, EndState::kKilled, 30, "was killed by SIGKILL");

TEST(EndFileTest, AnEndReadsBackAsWrittenAndIsPrivate) {
  const TestFolder folder;
  write_end_file({folder.path(), kJob}, kKilled);
  EXPECT_EQ(try_read_end_file({folder.path(), kJob}, 2), kKilled);
  struct stat status {};
  ASSERT_EQ(::stat(end_file_in(folder.path(), 2).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
}

TEST(EndFileTest, AMissingFolderIsCreated) {
  const TestFolder folder;
  write_end_file({folder.path() + "/flights", kJob}, kKilled);
  EXPECT_EQ(try_read_end_file({folder.path() + "/flights", kJob}, 2), kKilled);
}

TEST(EndFileTest, AMissingOrMalformedFileGivesNoEnd) {
  const TestFolder folder;
  EXPECT_EQ(try_read_end_file({folder.path(), kJob}, 2), std::nullopt);
  std::ofstream(end_file_in(folder.path(), 2)) << kJob << "\n2 half";
  EXPECT_EQ(try_read_end_file({folder.path(), kJob}, 2), std::nullopt);
  std::ofstream(end_file_in(folder.path(), 3)) << kJob << "\n"
                                               << to_line(kKilled);  // of another rank
  EXPECT_EQ(try_read_end_file({folder.path(), kJob}, 3), std::nullopt);
}

TEST(EndFileTest, AwaitReturnsAnEndThatComesInTimeAndIgnoresOtherJobs) {
  const TestFolder folder;
  const EndPlace place{folder.path(), kJob};
  write_end_file({folder.path(), "another"}, kKilled);
  EXPECT_EQ(await_end_file(place, 2, Deadline::after(milliseconds(5))), std::nullopt);
  std::thread launcher([&] {
    std::this_thread::sleep_for(milliseconds(10));  // so that there is something to wait for
    write_end_file(place, kKilled);
  });
  EXPECT_EQ(await_end_file(place, 2, Deadline::after(std::chrono::seconds(20))), kKilled);
  launcher.join();
}

TEST(EndFileTest, ALinkAPipeAndAFileOfAnotherUserAreIgnored) {
  const TestFolder folder;
  const TestFolder elsewhere;
  const EndPlace place{folder.path(), kJob};
  const std::string path = end_file_in(folder.path(), 2);
  write_end_file({elsewhere.path(), kJob}, kKilled);
  std::filesystem::create_symlink(end_file_in(elsewhere.path(), 2), path);
  EXPECT_EQ(try_read_end_file(place, 2), std::nullopt);
  std::filesystem::remove(path);

  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // else a pipe is an empty file
  EXPECT_EQ(try_read_end_file(place, 2), std::nullopt);
  std::filesystem::remove(path);

  write_end_file(place, kKilled);
  EXPECT_EQ(try_read_end_file(place, 2), kKilled);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(try_read_end_file(place, 2), std::nullopt);
  remove_end_files(folder.path());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(EndFileTest, RemoveDeletesEndFilesAndNothingElse) {
  const TestFolder folder;
  write_end_file({folder.path(), kJob}, kKilled);
  std::ofstream(flight_file_in(folder.path(), 2)) << "a flight";
  std::ofstream(folder.path() + "/my.end") << "mine";
  remove_end_files(folder.path());
  EXPECT_FALSE(std::filesystem::exists(end_file_in(folder.path(), 2)));
  EXPECT_TRUE(std::filesystem::exists(flight_file_in(folder.path(), 2)));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/my.end"));
}

}  // namespace
}  // namespace peal::observe
