#include "peal/cli/unknown_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/config/config.h"

namespace peal::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string_view nearest(const std::string& name) {
  const auto unknown = unknown_variables(std::vector{name});
  return unknown.empty() ? "known" : unknown.front().nearest;
}

TEST(UnknownVariablesTest, EveryNameInATableIsKnown) {
  std::vector<std::string> names;
  for (const Variable& variable : variables()) names.emplace_back(variable.name);
  for (const OtherVariable& variable : other_variables()) names.emplace_back(variable.name);
  EXPECT_THAT(unknown_variables(names), IsEmpty());
}

TEST(UnknownVariablesTest, NamesWithoutThePrefixAndNamesOfTestsAreIgnored) {
  const std::vector<std::string> names = {
      "", "PATH", "PEAL", "PEALING_TIMOUT", "peal_timeout", "PEAL_TEST_RUN"};
  EXPECT_THAT(unknown_variables(names), IsEmpty());
}

TEST(UnknownVariablesTest, AMisspeltNameGetsTheNearestKnownName) {
  EXPECT_EQ(nearest("PEAL_TIMOUT"), "PEAL_TIMEOUT");
  EXPECT_EQ(nearest("PEAL_TIMEOUTS"), "PEAL_TIMEOUT");
  EXPECT_EQ(nearest("PEAL_TRANSPROT"), "PEAL_TRANSPORT");
  EXPECT_EQ(nearest("PEAL_IFACE"), "PEAL_INTERFACE");
  EXPECT_EQ(nearest("PEAL_SECRETFILE"), "PEAL_SECRET_FILE");
  EXPECT_EQ(nearest("PEAL_SECRETS"), "PEAL_SECRET");
  EXPECT_EQ(nearest("PEAL_MASTERPORT"), "PEAL_MASTER_PORT");
}

TEST(UnknownVariablesTest, WithoutASimilarNameNoneIsSuggested) {
  EXPECT_EQ(nearest("PEAL_"), "");
  EXPECT_EQ(nearest("PEAL_X"), "");
  EXPECT_EQ(nearest("PEAL_COLOUR_OF_THE_LOGO"), "");
}

TEST(UnknownVariablesTest, AllUnknownNamesAreListedInOrder) {
  const std::vector<std::string> names = {"PEAL_STAGES", "HOME", "PEAL_JOBS"};
  EXPECT_THAT(unknown_variables(names),
              ElementsAre(UnknownVariable{"PEAL_STAGES", "PEAL_STAGE"},
                          UnknownVariable{"PEAL_JOBS", "PEAL_JOB"}));
}

}  // namespace
}  // namespace peal::cli
