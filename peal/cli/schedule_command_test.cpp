#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/operation.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/cli/testing/program.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Ended schedule(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schedule");
  return run_program(arguments);
}

TEST(ScheduleCommandTest, EachOperationIsPrintedAndProved) {
  for (const Operation operation : kAllCollectives) {
    for (const int ranks : {2, 3, 4, 6, 8, 12, 16}) {
      for (const int hosts : {1, 2, 3, 4}) {
        if (ranks % hosts != 0) continue;
        const Ended ended = schedule({std::string(name_of(operation)),
                                      fmt::format("--np={}", ranks),
                                      fmt::format("--hosts={}", hosts),
                                      "--bytes=40K"});
        EXPECT_EQ(ended.status, 0) << ended.err;
        EXPECT_THAT(ended.out,
                    AllOf(StartsWith(fmt::format("# {}", name_of(operation))),
                          HasSubstr("# the busiest rank: "),
                          HasSubstr("# proved: "),
                          HasSubstr(fmt::format("\nrank {}", ranks - 1))));
      }
    }
  }
}

TEST(ScheduleCommandTest, TheCostIsPrinted) {
  EXPECT_THAT(
      schedule({"all_reduce", "-n", "4", "--bytes", "1M", "--hosts", "4", "--algorithm", "ring"})
          .out,
      AllOf(HasSubstr("# all_reduce of 1 MiB (262144 f32), 4 ranks on 4 hosts\n"),
            HasSubstr("# by ring; possible: "),
            HasSubstr("# the busiest rank: 6 messages with 1536 KiB, ")));
}

TEST(ScheduleCommandTest, TheMemoryOfAllRanksOrOfSomeMayBeRegistered) {
  const std::vector<std::string> common = {"all_reduce", "-n", "2", "--bytes", "1M"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return schedule(arguments).out;
  };
  EXPECT_THAT(with({}), Not(HasSubstr("input[0:2]")));
  EXPECT_THAT(with({"--registered"}), AllOf(HasSubstr("input[0:2]"), HasSubstr("# proved")));
  EXPECT_THAT(
      with({"--registered", "1"}),
      AllOf(HasSubstr(" registered=1\n"), Not(HasSubstr("input[0:2]")), HasSubstr("# proved")));
}

TEST(ScheduleCommandTest, TheVariablesOfAJobHaveAnEffect) {
  const ScopedVariable algorithm("PEAL_ALGORITHM", "halving_doubling");
  EXPECT_THAT(schedule({"all_reduce", "-n", "4"}).out, HasSubstr("# by halving_doubling;"));
}

TEST(ScheduleCommandTest, OneRankCanBePrintedAlone) {
  EXPECT_THAT(schedule({"barrier", "-n", "3", "--rank", "1"}).out,
              AllOf(HasSubstr("\nrank 1\n  signal 1\n"), Not(HasSubstr("rank 2"))));
}

class VerifyTest : public testing::Test {
 protected:
  std::string file_with(const std::string& text) const { return folder_.write("schedule", text); }

 private:
  PrivateFolder folder_{"peal-test."};
};

TEST_F(VerifyTest, APrintedScheduleCanBeVerified) {
  const std::string printed = schedule({"gather", "-n", "3", "--bytes", "8K"}).out;
  const Ended ended = schedule({"--verify", file_with(printed)});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, StartsWith("# proved: "));
}

TEST_F(VerifyTest, ABrokenScheduleIsRejectedWithTheStepAndTheReason) {
  std::string printed =
      schedule({"broadcast", "-n", "2", "--bytes", "8K", "--algorithm", "binomial_tree"}).out;
  const std::string right = "-> output[1]@0 x2048";
  ASSERT_THAT(printed, HasSubstr(right));
  printed.replace(printed.find(right), right.size(), "-> output[1]@0 x2047");
  const Ended ended = schedule({"--verify", file_with(printed)});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out,
              AllOf(StartsWith("# not right:\n"),
                    HasSubstr("rank 1, step 0 (move wire[0]@0 -> output[1]@0 x2047): receives 2047 "
                              "elements")));
}

TEST_F(VerifyTest, AMalformedScheduleIsRejectedWithItsLine) {
  const Ended ended = schedule({"--verify", file_with("barrier ranks=2\nrank 0\njump 1\n")});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("line 3 of the schedule"));
  EXPECT_THAT(schedule({"--verify", "/no/such/file"}).err,
              HasSubstr("cannot be read: No such file"));
}

TEST(ScheduleCommandTest, WrongArgumentsAreRejectedAndTheErrorSaysWhatIsRight) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const Ended ended = schedule(arguments);
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    return ended.err;
  };
  EXPECT_THAT(error_of({}), HasSubstr("which operation?"));
  EXPECT_THAT(error_of({"reduce_all"}), HasSubstr("there is no operation \"reduce_all\""));
  EXPECT_THAT(error_of({"barrier", "-n", "3", "--hosts", "2"}), HasSubstr("spread evenly"));
  EXPECT_THAT(error_of({"barrier", "-n", "0"}), HasSubstr("--np 0"));
  EXPECT_THAT(error_of({"broadcast", "--root", "2"}), HasSubstr("the ranks are 0 to 1"));
  EXPECT_THAT(error_of({"all_reduce", "--bytes", "much"}), HasSubstr("it takes a size"));
  EXPECT_THAT(error_of({"all_reduce", "--registered", "0,2"}), HasSubstr("ranks from 0 to 1"));
  EXPECT_THAT(error_of({"scatter", "--algorithm", "ring"}), HasSubstr("cannot do this; possible:"));
  EXPECT_THAT(error_of({"scatter", "--algorithm", "rign"}), HasSubstr("no algorithm \"rign\""));
}

}  // namespace
}  // namespace peal::cli
