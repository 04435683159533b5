#include "peal/bench/subprocess.h"

#include <gtest/gtest.h>

namespace peal::bench {
namespace {

TEST(SubprocessTest, TheResultHasTheOutputAndTheStatusOfTheProgram) {
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
