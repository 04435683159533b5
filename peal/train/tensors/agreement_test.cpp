#include "peal/train/tensors/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/group/testing/idle_backend.h"
#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;
using testing::thrown_text;

using Lines = std::vector<std::string>;

constexpr Subject kBells = {.what = "bells", .advice = "hang them alike"};

/// The error text of each rank when rank r passes lines_of(r).
template <class LinesOf>
Lines errors_of(int ranks, LinesOf&& lines_of) {
  return on_ranks(ranks, [&](const ProcessGroupPtr& group) {
    return thrown_text([&] { require_agreement(*group, kBells, lines_of(group->rank())); });
  });
}

TEST(AgreementTest, EqualLinesGiveNoError) {
  EXPECT_THAT(errors_of(3, [](Rank) { return Lines{"treble", "tenor"}; }), Each("no error"));
  EXPECT_THAT(errors_of(2, [](Rank) { return Lines{}; }), Each("no error"));
}

TEST(AgreementTest, TheErrorOnEveryRankHasTheFirstDifferenceAndBothSides) {
  const Lines errors = errors_of(3, [](Rank rank) {
    return Lines{"treble", rank == 1 ? "second" : "2nd", rank == 2 ? "third" : "3rd"};
  });
  EXPECT_THAT(errors,
              Each(HasSubstr(
                  "same bells: number 1 is 2nd on rank 0 and second on rank 1; hang them alike")));
}

TEST(AgreementTest, AnExtraOrMissingLineIsADifference) {
  EXPECT_THAT(errors_of(2,
                        [](Rank rank) {
                          return rank == 0 ? Lines{"a", "b"} : Lines{"a"};
                        }),
              Each(HasSubstr("number 1 is b on rank 0 and nothing on rank 1")));
  EXPECT_THAT(errors_of(2, [](Rank rank) { return rank == 1 ? Lines{"a"} : Lines{}; }),
              Each(HasSubstr("number 0 is nothing on rank 0 and a on rank 1")));
}

TEST(AgreementTest, AgreementCostsTwoSmallOperationsAndABroadcastOfTheLines) {
  auto backend = std::make_unique<peal::testing::IdleBackend>(2);
  const auto& asked = backend->asked();
  ProcessGroup group(std::move(backend), {});
  require_agreement(group, kBells, {std::string(100, 'x')});
  using peal::testing::Asked;
  EXPECT_THAT(asked,
              ::testing::ElementsAre(Asked{Operation::kBroadcast, 8_B},
                                     Asked{Operation::kBroadcast, 101_B},
                                     Asked{Operation::kAllReduce, 8_B}));
}

}  // namespace
}  // namespace peal::train
