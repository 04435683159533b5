#include "peal/train/ddp/arrival_order.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void pass(ArrivalOrder& order, const std::vector<std::size_t>& arrivals) {
  order.begin_pass();
  for (const std::size_t gradient : arrivals) order.arrived(gradient);
  order.end_pass();
}

TEST(ArrivalOrderTest, AnOrderIsLearnedWhenTwoPassesInSuccessionHaveIt) {
  ArrivalOrder order(3);
  pass(order, {2, 0, 1});
  EXPECT_THAT(order.learned(), IsEmpty());
  pass(order, {2, 0, 1});
  EXPECT_THAT(order.learned(), ElementsAre(2, 0, 1));
}

TEST(ArrivalOrderTest, AnotherOrderIsLearnedLater) {
  ArrivalOrder order(2);
  for (int i = 0; i < 2; ++i) pass(order, {1, 0});
  pass(order, {0, 1});
  EXPECT_THAT(order.learned(), ElementsAre(1, 0));
  pass(order, {0, 1});
  EXPECT_THAT(order.learned(), ElementsAre(0, 1));
}

TEST(ArrivalOrderTest, AnOrderThatChangesInEachPassIsNotLearned) {
  ArrivalOrder order(2);
  for (int i = 0; i < 4; ++i) {
    pass(order, {0, 1});
    pass(order, {1, 0});
  }
  EXPECT_THAT(order.learned(), IsEmpty());
}

TEST(ArrivalOrderTest, PassesWithoutSomeGradientDoNotCount) {
  ArrivalOrder order(2);
  pass(order, {0, 1});
  pass(order, {1});
  pass(order, {0, 1});
  EXPECT_THAT(order.learned(), ElementsAre(0, 1));
  pass(order, {1});
  pass(order, {1});
  EXPECT_THAT(order.learned(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace peal::train
