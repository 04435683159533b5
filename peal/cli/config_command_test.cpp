#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/scoped_variable.h"
#include "peal/cli/testing/program.h"
#include "peal/plan/plan.h"
#include "peal/system/private_folder.h"

namespace peal::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kRunTrue = {"run", "-n", "2", "true"};

TEST(ConfigCommandTest, EachVariableIsShownWithItsValueAndMeaning) {
  const ScopedVariable timeout("PEAL_TIMEOUT", "300");
  const ScopedVariable job("PEAL_JOB", "mine");
  const Ended ended = run_program({"config"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("PEAL_TIMEOUT = 300\n"),
                    HasSubstr("PEAL_SECRET = none (default)"),
                    HasSubstr("PEAL_JOB = mine\n"),
                    HasSubstr("PEAL_MASTER_PORT = none\n"),
                    Not(HasSubstr("unknown to peal"))));
}

TEST(ConfigCommandTest, AWrongValueIsMarkedAndTheOthersAreShown) {
  const ScopedVariable timeout("PEAL_TIMEOUT", "soon");
  const ScopedVariable secret("PEAL_SECRET_FILE", "/no/such/file");
  const ScopedVariable stage("PEAL_STAGE", "64kib");
  const Ended ended = run_program({"config"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(
      ended.out,
      AllOf(HasSubstr("\n! PEAL_TIMEOUT=\"soon\": it takes seconds"),
            HasSubstr("\n! PEAL_SECRET_FILE=\"/no/such/file\": cannot be read: No such file"),
            HasSubstr("PEAL_TRANSPORT = auto (default)"),
            HasSubstr("PEAL_STAGE = 65536\n"),
            HasSubstr("2 of these values")));
}

TEST(ConfigCommandTest, TheChoicesAreShownInTheFormOfPealTune) {
  const ScopedVariable tune("PEAL_TUNE", "all_reduce:0-64k:ring; barrier : 0-inf:pairwise");
  const Ended ended = run_program({"config", "--choices"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out,
              AllOf(HasSubstr("\n# PEAL_TUNE\nall_reduce:0-64k:ring\nbarrier:0-inf:pairwise\n"),
                    HasSubstr("\nall_to_all@hosts:0-inf:pairwise\n")));
}

TEST(ConfigCommandTest, AChoiceThatNeverAppliesIsMarked) {
  const ScopedVariable tune("PEAL_TUNE",
                            "all_reduce@hosts:0-inf:direct;all_reduce@host:0-inf:two_level");
  const ScopedVariable algorithm("PEAL_ALGORITHM", "two_level");
  const Ended ended = run_program({"config", "--choices"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(
      ended.out,
      AllOf(HasSubstr(
                "\nall_reduce@hosts:0-inf:direct   # never applies: direct cannot do this "
                "operation here\nall_reduce@host:0-inf:two_level   # never applies: two_level "),
            HasSubstr("\nall_reduce@levels:0-inf:two_level\n"),
            HasSubstr(
                "# Before all rows, where it can do the operation: PEAL_ALGORITHM=two_level\n")));
}

TEST(ConfigCommandTest, ValuesThatOtherFoldersCheckAreCheckedToo) {
  struct Wrong {
    const char* name;
    const char* value;
    std::string shown;
  };
  for (const Wrong& wrong :
       {Wrong{
            "PEAL_TUNE", "all_reduce:0-64k:rign", "row 1, \"all_reduce:0-64k:rign\": there is no"},
        Wrong{"PEAL_ALGORITHM", "rign", "there is no algorithm \"rign\""},
        Wrong{"PEAL_CONGESTION", "pigeons", "cannot use the congestion control pigeons"},
        Wrong{"PEAL_MASTER_PORT", "door", "\"door\" is not a port"}}) {
    const ScopedVariable variable(wrong.name, wrong.value);
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"config"}, {"config", "--choices"}}) {
      const Ended ended = run_program(command);
      EXPECT_EQ(ended.status, 2);
      EXPECT_THAT(ended.out, HasSubstr("! " + std::string(wrong.name) + ": " + wrong.shown));
    }
  }
}

TEST(ConfigCommandTest, TheLineInAFileOfChoicesIsNamed) {
  const PrivateFolder folder("peal-test.");
  const std::string path =
      folder.write("tune", "# mine\n\nbarrier:0-inf:direct\nall_reduce:0-64k:rign\n");
  const ScopedVariable variable("PEAL_TUNE", ("@" + path).c_str());
  const Ended ended = run_program({"config", "--choices"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.out,
              HasSubstr("! PEAL_TUNE=@" + path + ": line 4, \"all_reduce:0-64k:rign\": "));
}

TEST(ConfigCommandTest, AFolderInsteadOfAFileIsAWrongValue) {
  const ScopedVariable tune("PEAL_TUNE", "@/var/tmp");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"config"}, {"config", "--choices"}, {"bench", "barrier"}}) {
    const Ended ended = run_program(command);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.out + ended.err,
                HasSubstr("PEAL_TUNE=\"@/var/tmp\": cannot be read: Is a directory"));
  }
}

TEST(ConfigCommandTest, AllAlgorithmsAreListedForPealAlgorithm) {
  const Ended ended = run_program({"config"});
  const std::size_t begin = ended.out.find("\nPEAL_ALGORITHM = ");
  ASSERT_NE(begin, std::string::npos);
  const std::string entry =
      ended.out.substr(begin, ended.out.find("\n\n", begin + 1) - begin);  // without PEAL_TUNE
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    EXPECT_THAT(entry, HasSubstr(std::string(algorithm.name)));
  }
}

TEST(ConfigCommandTest, UnknownNamesAreListedWithTheNearestKnownName) {
  const ScopedVariable timeout("PEAL_TIMOUT", "10");
  const ScopedVariable other("PEAL_Q", "");
  const Ended ended = run_program({"config"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out,
              HasSubstr("but unknown to peal:\n    PEAL_Q\n    PEAL_TIMOUT (did you mean "
                        "PEAL_TIMEOUT?)\n"));
}

TEST(RunWarningTest, UnknownNamesGiveOneLineAndDoNotFail) {
  const ScopedVariable timeout("PEAL_TIMOUT", "10");
  const Ended ended = run_program({"run", "-n", "2", "-x", "PEAL_STAGES=1M", "true"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(
      ended.err,
      "peal: warning: peal does not read PEAL_STAGES (did you mean PEAL_STAGE?), PEAL_TIMOUT (did "
      "you mean PEAL_TIMEOUT?); see peal config\n");
}

TEST(RunWarningTest, KnownNamesAndNamesOfTestsGiveNoWarning) {
  const ScopedVariable timeout("PEAL_TIMEOUT", "10");
  const ScopedVariable seed("PEAL_TEST_SEED", "1");
  EXPECT_EQ(run_program(kRunTrue).err, "");
}

}  // namespace
}  // namespace peal::cli
