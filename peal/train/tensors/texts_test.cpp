#include "peal/train/tensors/texts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// Texts of different lengths; that of rank 1 is empty, and that of rank 2 has a zero byte.
std::string text_of(Rank rank) {
  if (rank == 1) return "";
  return rank == 2 ? std::string("a\0b", 3) : "text of rank 0";
}

TEST(TextsTest, EveryRankGetsTheTextOfTheRoot) {
  for (const Rank root : {0, 1, 2}) {
    const auto texts = testing::on_ranks(3, [&](const ProcessGroupPtr& group) {
      return broadcast_text(*group, text_of(group->rank()), root);
    });
    EXPECT_THAT(texts, Each(text_of(root)));
  }
}

TEST(TextsTest, EveryRankGetsTheTextOfEachRank) {
  for (const int ranks : {1, 3}) {
    const auto texts = testing::on_ranks(ranks, [](const ProcessGroupPtr& group) {
      return gather_texts(*group, text_of(group->rank()));
    });
    if (ranks == 1) {
      EXPECT_THAT(texts, Each(ElementsAre(text_of(0))));
    } else {
      EXPECT_THAT(texts, Each(ElementsAre(text_of(0), text_of(1), text_of(2))));
    }
  }
}

}  // namespace
}  // namespace peal::train
