#include "peal/schedule/inline_vector.h"

#include <gtest/gtest.h>

namespace peal::schedule {
namespace {

TEST(InlineVectorTest, ComparisonReadsTheSizeAndTheElements) {
  const InlineVector<int, 3> values = {1, 2};
  EXPECT_EQ(values, (InlineVector<int, 3>{1, 2}));
  EXPECT_NE(values, (InlineVector<int, 3>{1, 3}));
  EXPECT_NE(values, (InlineVector<int, 3>{1, 2, 0}));
  EXPECT_EQ(values.size(), 2u);
}

}  // namespace
}  // namespace peal::schedule
