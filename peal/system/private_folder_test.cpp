#include "peal/system/private_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "peal/base/clock.h"
#include "peal/base/testing/idle_child.h"

namespace peal {
namespace {

constexpr const char* kPrefix = "peal-test.";

pid_t dead_process() {
  IdleChild child;
  child.end();
  return child.pid();
}

TEST(PrivateFolderTest, AFolderIsPrivateAndIsRemovedWithItsContent) {
  std::filesystem::path path;
  {
    const PrivateFolder folder(kPrefix);
    path = folder.path();
    struct stat status {};
    ::stat(path.c_str(), &status);
    EXPECT_EQ(status.st_mode & 0777, 0700);
    std::string read;
    std::ifstream(folder.write("a", "text")) >> read;
    EXPECT_EQ(read, "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PrivateFolderTest, OnlyFoldersOfDeadProcessesAreRemoved) {
  const auto parent = std::filesystem::temp_directory_path();
  const auto left = parent / fmt::format("peal-test.{}.x", dead_process());
  const auto alive = parent / fmt::format("peal-test.{}.x", ::getpid());
  std::filesystem::create_directories(left / "inside");
  std::filesystem::create_directory(alive);
  { const PrivateFolder folder(kPrefix); }
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::remove(alive));
}

TEST(PrivateFolderTest, AFolderOfAnotherUserIsNeverRemoved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const PrivateFolder parent(kPrefix);
  const auto others = parent.path() / fmt::format("peal-test.{}.x", dead_process());
  std::filesystem::create_directories(others / "inside");
  ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
  remove_folders_of_ended_processes(kPrefix, parent.path());
  EXPECT_TRUE(std::filesystem::exists(others / "inside"));
}

TEST(PrivateFolderTest, AnotherParentIsCleanedToo) {
  const PrivateFolder parent(kPrefix);
  const auto left = parent.path() / fmt::format("peal-test.{}.x", dead_process());
  std::filesystem::create_directories(left / "inside");
  {
    const PrivateFolder inside(kPrefix, parent.path());
    EXPECT_EQ(inside.path().parent_path(), parent.path());
    EXPECT_FALSE(std::filesystem::exists(left));
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
}

/// Like another container that shares the parent, where this process has another number.
TEST(PrivateFolderTest, ALockedFolderIsKeptEvenIfTheProcessInItsNameHasEnded) {
  const PrivateFolder parent(kPrefix);
  const auto renamed = parent.path() / fmt::format("peal-test.{}.x", dead_process());
  {
    const PrivateFolder live(kPrefix, parent.path());
    std::filesystem::rename(live.path(), renamed);
    remove_folders_of_ended_processes(kPrefix, parent.path());
    EXPECT_TRUE(std::filesystem::exists(renamed));
  }
  remove_folders_of_ended_processes(kPrefix, parent.path());
  EXPECT_FALSE(std::filesystem::exists(renamed));
}

TEST(PrivateFolderTest, TheFolderOfAKilledProcessIsRemovedEvenIfItsChildProgramLives) {
  const PrivateFolder parent(kPrefix);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  const pid_t run = ::fork();
  if (run == 0) {
    const PrivateFolder folder(kPrefix, parent.path());
    std::array<char*, 3> words = {const_cast<char*>("sleep"), const_cast<char*>("60"), nullptr};
    pid_t program = -1;
    ::posix_spawnp(&program, words[0], nullptr, nullptr, words.data(), ::environ);
    if (::write(writer.get(), &program, sizeof program) == sizeof program) ::pause();
    ::_exit(1);
  }
  pid_t program = -1;
  ASSERT_EQ(::read(reader.get(), &program, sizeof program), ssize_t{sizeof program});
  remove_folders_of_ended_processes(kPrefix, parent.path());
  EXPECT_FALSE(std::filesystem::is_empty(parent.path()));
  ::kill(run, SIGKILL);
  ::waitpid(run, nullptr, 0);
  // The program holds the lock until the system has closed its descriptors. That may happen a
  // moment after posix_spawn has returned.
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  do {
    remove_folders_of_ended_processes(kPrefix, parent.path());
  } while (!std::filesystem::is_empty(parent.path()) && !deadline.passed());
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  ASSERT_GT(program, 0);
  EXPECT_EQ(::kill(program, SIGKILL), 0);
}

TEST(PrivateFolderTest, ANameNeedsThePrefixAndANumber) {
  const std::string dead = fmt::format("{}", dead_process());
  EXPECT_TRUE(is_of_an_ended_process("pealb" + dead, "pealb"));
  EXPECT_TRUE(is_of_an_ended_process("peal-bench-" + dead + "-0", "peal-bench-"));
  EXPECT_FALSE(is_of_an_ended_process("other" + dead, "pealb"));
  EXPECT_FALSE(is_of_an_ended_process("pealbridge", "pealb"));
  EXPECT_FALSE(is_of_an_ended_process(fmt::format("pealb{}", ::getpid()), "pealb"));
}

TEST(PrivateFolderTest, AZombieCountsAsDead) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_of_an_ended_process(fmt::format("pealb{}", pid), "pealb"));
  ::waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace peal
