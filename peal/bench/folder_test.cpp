#include "peal/bench/folder.h"

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

#include "peal/bench/shared_file.h"
#include "peal/bench/subprocess.h"

namespace peal::bench {
namespace {

pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

TEST(FolderTest, IsOursAloneAndGoesWithAllThatIsInIt) {
  std::filesystem::path path;
  {
    const Folder folder;
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

TEST(FolderTest, WhatTheDeadHaveLeftIsRemovedAndNothingElse) {
  const auto parent = std::filesystem::temp_directory_path();
  const auto left = parent / fmt::format("peal-bench.{}.x", dead_process());
  const auto alive = parent / fmt::format("peal-bench.{}.x", ::getpid());
  std::filesystem::create_directories(left / "inside");
  std::filesystem::create_directory(alive);
  { const Folder folder; }
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::remove(alive));
}

TEST(FolderTest, AnotherParentIsTakenAndCleanedToo) {
  const Folder parent;
  const auto left = parent.path() / fmt::format("peal-bench.{}.x", dead_process());
  std::filesystem::create_directories(left / "inside");
  {
    const Folder inside(parent.path());
    EXPECT_EQ(inside.path().parent_path(), parent.path());
    EXPECT_FALSE(std::filesystem::exists(left));
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
}

/// As in another container that shares the parent, where this process has another number.
TEST(FolderTest, ThatOfALiveRunStaysThoughNoProcessHasTheNumberInItsName) {
  const Folder parent;
  const auto renamed = parent.path() / fmt::format("peal-bench.{}.x", dead_process());
  {
    const Folder live(parent.path());
    std::filesystem::rename(live.path(), renamed);
    remove_folders_of_the_dead(parent.path());
    EXPECT_TRUE(std::filesystem::exists(renamed));
  }
  remove_folders_of_the_dead(parent.path());
  EXPECT_FALSE(std::filesystem::exists(renamed));
}

TEST(FolderTest, ThatOfAKilledRunGoesThoughAProgramThatItHasStartedLivesOn) {
  const Folder parent;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  const pid_t run = ::fork();
  if (run == 0) {
    const Folder folder(parent.path());
    std::array<char*, 3> words = {const_cast<char*>("sleep"), const_cast<char*>("60"), nullptr};
    pid_t program = -1;
    ::posix_spawnp(&program, words[0], nullptr, nullptr, words.data(), ::environ);
    if (::write(writer.get(), &program, sizeof program) == sizeof program) ::pause();
    ::_exit(1);
  }
  pid_t program = -1;
  ASSERT_EQ(::read(reader.get(), &program, sizeof program), ssize_t{sizeof program});
  remove_folders_of_the_dead(parent.path());
  EXPECT_FALSE(std::filesystem::is_empty(parent.path()));
  ::kill(run, SIGKILL);
  ::waitpid(run, nullptr, 0);
  remove_folders_of_the_dead(parent.path());
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  ASSERT_GT(program, 0);
  EXPECT_EQ(::kill(program, SIGKILL), 0);
}

TEST(FolderTest, OnlyANameWithThePrefixAndANumberIsOneOfOurs) {
  const std::string dead = fmt::format("{}", dead_process());
  EXPECT_TRUE(is_left_by_the_dead("pealb" + dead, "pealb"));
  EXPECT_TRUE(is_left_by_the_dead("peal-bench-" + dead + "-0", "peal-bench-"));
  EXPECT_FALSE(is_left_by_the_dead("other" + dead, "pealb"));
  EXPECT_FALSE(is_left_by_the_dead("pealbridge", "pealb"));
  EXPECT_FALSE(is_left_by_the_dead(fmt::format("pealb{}", ::getpid()), "pealb"));
}

TEST(FolderTest, AProcessThatHasEndedIsDeadThoughNobodyHasAskedHow) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_left_by_the_dead(fmt::format("pealb{}", pid), "pealb"));
  ::waitpid(pid, nullptr, 0);
}

TEST(SharedFileTest, WhatOneMappingWritesAnotherReads) {
  const SharedFile file("test", 64_B);
  const Mapping small(file.path(), 64_B);
  small.data()[63] = std::byte{7};
  const Mapping large(file.path(), 8192_B);
  EXPECT_EQ(large.data()[63], std::byte{7});
  EXPECT_EQ(large.data()[8191], std::byte{0});
}

TEST(SubprocessTest, TheOutputAndTheStatusAreTheProgramsOwn) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  const Finished finished = run_program({"sh", "-c", "echo out; echo err >&2; exit 3"}, deadline);
  EXPECT_EQ(finished.status, 3);
  EXPECT_EQ(finished.output, "out\nerr\n");
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, deadline).status, 128 + 9);
  EXPECT_EQ(run_program({"there-is-no-such-program"}, deadline).status, 127);
}

TEST(SubprocessTest, AProgramThatTakesTooLongIsKilled) {
  const Finished finished = run_program({"sleep", "60"}, Deadline::after(Timeout(50)));
  EXPECT_EQ(finished.status, 128 + 9);
}

TEST(SubprocessTest, ProgramsAreFoundInThePath) {
  EXPECT_TRUE(find_program("sh")->ends_with("/sh"));
  EXPECT_EQ(find_program("there-is-no-such-program"), std::nullopt);
}

}  // namespace
}  // namespace peal::bench
