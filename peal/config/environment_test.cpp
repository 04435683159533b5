#include "peal/config/environment.h"

#include <gtest/gtest.h>

namespace peal {
namespace {

TEST(EnvironmentTest, AFixedEnvironmentContainsOnlyTheGivenVariables) {
  const Environment environment = fixed_environment({{"RANK", "3"}, {"EMPTY", ""}});
  EXPECT_EQ(environment("RANK"), "3");
  EXPECT_EQ(environment("EMPTY"), "");
  EXPECT_EQ(environment("PATH"), std::nullopt);
}

TEST(EnvironmentTest, TheProcessEnvironmentContainsTheVariablesOfTheProcess) {
  EXPECT_TRUE(process_environment()("PATH").has_value());
  EXPECT_EQ(process_environment()("PEAL_NO_SUCH_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace peal
