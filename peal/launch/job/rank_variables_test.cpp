#include "peal/launch/job/rank_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;
using Variables = std::map<std::string, std::string>;

TEST(RankVariablesTest, ARankFindsItsPlaceInTorchsAndHorovodsNames) {
  Variables variables;
  set_rank_variables({.rank = 5,
                      .world_size = 8,
                      .local_rank = 1,
                      .local_size = 4,
                      .group = 2,
                      .groups = 3,
                      .cross_rank = 6,
                      .cross_size = 7,
                      .host = "n2"},
                     variables);
  EXPECT_THAT(variables,
              UnorderedElementsAre(Pair("RANK", "5"),
                                   Pair("WORLD_SIZE", "8"),
                                   Pair("LOCAL_RANK", "1"),
                                   Pair("LOCAL_WORLD_SIZE", "4"),
                                   Pair("GROUP_RANK", "2"),
                                   Pair("NODE_RANK", "2"),
                                   Pair("GROUP_WORLD_SIZE", "3"),
                                   Pair("HOROVOD_RANK", "5"),
                                   Pair("HOROVOD_SIZE", "8"),
                                   Pair("HOROVOD_LOCAL_RANK", "1"),
                                   Pair("HOROVOD_LOCAL_SIZE", "4"),
                                   Pair("HOROVOD_CROSS_RANK", "6"),
                                   Pair("HOROVOD_CROSS_SIZE", "7"),
                                   Pair("HOROVOD_HOSTNAME", "n2")));
}

TEST(RankVariablesTest, ANodeThatStartsItsRanksHasNoLocalRank) {
  Variables variables;
  set_node_variables(1, 3, variables);
  EXPECT_THAT(variables,
              UnorderedElementsAre(Pair("RANK", "1"),
                                   Pair("GROUP_RANK", "1"),
                                   Pair("NODE_RANK", "1"),
                                   Pair("WORLD_SIZE", "3"),
                                   Pair("GROUP_WORLD_SIZE", "3")));
}

TEST(RankVariablesTest, VariablesOfAnotherJobAreRemovedAndOthersStay) {
  Variables variables = {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}, {"PATH", "/bin"}};
  set_rank_variables({}, variables);
  remove_rank_variables(variables);
  EXPECT_THAT(variables, UnorderedElementsAre(Pair("PATH", "/bin")));
}

}  // namespace
}  // namespace peal::launch
