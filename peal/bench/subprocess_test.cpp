#include "peal/bench/subprocess.h"

#include <gtest/gtest.h>

#include "peal/bench/shared_file.h"

namespace peal::bench {
namespace {

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
