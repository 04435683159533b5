#include "peal/launch/spawn.h"

#include <array>
#include <future>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>

#include "peal/base/testing/error_of.h"
#include "peal/init/init.h"
#include "peal/launch/testing/spawning.h"

namespace peal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SpawnTest, EachRankReturnsItsResultByRank) {
  EXPECT_THAT(spawn(3, [](Rank rank) { return 10 * rank; }), ElementsAre(0, 10, 20));
}

struct Point {
  double x = 0;
  std::array<int, 3> counts{};
  friend bool operator==(const Point&, const Point&) = default;
};

TEST_F(SpawnTest, ResultsAreValuesTextsAndLists) {
  EXPECT_THAT(spawn(2,
                    [](Rank rank) {
                      return Point{0.5, {rank, 2, 3}};
                    }),
              ElementsAre(Point{0.5, {0, 2, 3}}, Point{0.5, {1, 2, 3}}));
  const std::string with_null("a\0b", 3);
  EXPECT_THAT(spawn(2, [&](Rank rank) { return rank == 0 ? with_null : std::string(); }),
              ElementsAre(with_null, ""));
  EXPECT_THAT(spawn(2, [](Rank rank) { return std::vector<std::string>(rank, "text"); }),
              ElementsAre(ElementsAre(), ElementsAre("text")));
  EXPECT_THAT(spawn(1,
                    [](Rank) {
                      return std::vector<std::vector<Point>>{{}, {Point{1, {}}}};
                    }),
              ElementsAre(ElementsAre(ElementsAre(), ElementsAre(Point{1, {}}))));
  EXPECT_THAT(spawn(1,
                    [](Rank) {
                      return std::vector<bool>{true, false};
                    }),
              ElementsAre(ElementsAre(true, false)));
}

TEST_F(SpawnTest, ALargeResultArrivesWhole) {
  const auto results = spawn(2, [](Rank rank) { return std::vector<double>(1'000'000, rank); });
  EXPECT_EQ(results[1], std::vector<double>(1'000'000, 1.0));
}

TEST_F(SpawnTest, AFunctionWithoutAResultReturnsNothing) {
  spawn(2, [](Rank) {});
  static_assert(std::is_void_v<decltype(spawn(2, [](Rank) {}))>);
}

template <class Result>
constexpr bool kIsAccepted = launch::ResultValue<Result>;

TEST_F(SpawnTest, PointersAndViewsAreNoResults) {
  EXPECT_FALSE(kIsAccepted<const char*>);
  EXPECT_FALSE(kIsAccepted<std::string_view>);
  EXPECT_FALSE(kIsAccepted<std::vector<int*>>);
  EXPECT_FALSE((kIsAccepted<std::set<int>>));
}

TEST_F(SpawnTest, TheRanksAreTheRanksOfAGroup) {
  const auto sums = spawn(3, [](Rank rank) {
    const ProcessGroupPtr group = init_process_group();
    std::vector<float> values = {static_cast<float>(group->rank() + 1), static_cast<float>(rank)};
    group->all_reduce(values);
    return values;
  });
  EXPECT_THAT(sums, ElementsAre(ElementsAre(6, 3), ElementsAre(6, 3), ElementsAre(6, 3)));
}

TEST_F(SpawnTest, TheFunctionUsesWhatItCapturesAndChangesOnlyCopies) {
  std::vector<int> data = {1, 2, 3};
  const auto sizes = spawn(2, [&](Rank rank) {
    data.resize(10 + static_cast<std::size_t>(rank));
    return data.size();
  });
  EXPECT_THAT(sizes, ElementsAre(10u, 11u));
  EXPECT_THAT(data, ElementsAre(1, 2, 3));
}

TEST_F(SpawnTest, ARankCanSpawnRanksOfItsOwn) {
  const auto results = spawn(2, [](Rank outer) {
    const auto inner = spawn(2, [&](Rank rank) {
      std::vector<int> value = {100 * outer + rank};
      init_process_group()->all_reduce(value);
      return value[0];
    });
    std::vector<int> value = {inner[0]};
    init_process_group()->all_reduce(value);
    return value[0] + inner[1];
  });
  EXPECT_THAT(results, ElementsAre(1 + 1 + 201, 1 + 201 + 201));
}

TEST_F(SpawnTest, ACallerWithSeveralThreadsIsAUsageError) {
  std::promise<void> end;
  std::thread thread([&] { end.get_future().wait(); });
  const Error error = error_of([] { spawn(2, [](Rank) {}); });
  end.set_value();
  thread.join();
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("2 threads"), HasSubstr("at the beginning of main")));
  spawn(2, [](Rank) {});  // right after the join
}

TEST_F(SpawnTest, FewerRanksThanOneAreAUsageError) {
  EXPECT_EQ(error_of([] { spawn(0, [](Rank) {}); }).kind(), ErrorKind::kUsage);
  EXPECT_EQ(error_of([] { spawn(1, [](Rank) {}, {.grace = Timeout(-1)}); }).kind(),
            ErrorKind::kUsage);
}

}  // namespace
}  // namespace peal
