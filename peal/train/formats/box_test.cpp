#include "peal/train/formats/box.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Call>
std::string thrown_text(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST(Box, TheIntersectionIsTheCommonPart) {
  const Box a{{0, 2}, {3, 4}};
  EXPECT_EQ(intersection(a, {{1, 0}, {5, 4}}), (Box{{1, 2}, {2, 2}}));
  EXPECT_EQ(intersection(a, a), a);
  EXPECT_EQ(intersection(a, {{3, 2}, {1, 4}}), std::nullopt);
  EXPECT_EQ(intersection({{}, {}}, {{}, {}}), (Box{{}, {}})) << "a number has one element";
}

TEST(Box, TheShapeAroundBoxesHasAllOfThem) {
  EXPECT_THAT(shape_around({{{0, 2}, {3, 4}}, {{2, 0}, {2, 1}}}), ElementsAre(4, 6));
  EXPECT_THAT(shape_around({{{}, {}}}), ElementsAre());
  EXPECT_THAT(thrown_text([] { shape_around({}); }), HasSubstr("no parts"));
  EXPECT_THAT(thrown_text([] {
                shape_around({{{0}, {1}}, {{0, 0}, {1, 1}}});
              }),
              HasSubstr("different numbers of dimensions"));
  EXPECT_THAT(thrown_text([] { shape_around({{{kHuge}, {1}}}); }), HasSubstr("beyond 2^63"));
}

TEST(Box, ADivisionHasEachElementOnce) {
  EXPECT_EQ(why_not_divided({4, 3}, {{{0, 0}, {1, 3}}, {{1, 0}, {3, 2}}, {{1, 2}, {3, 1}}}), "");
  EXPECT_EQ(why_not_divided({4, 3}, {whole_box({4, 3}), {{4, 0}, {0, 3}}}), "") << "an empty box";
  EXPECT_EQ(why_not_divided({}, {whole_box({})}), "");
  EXPECT_EQ(why_not_divided({0, 3}, {whole_box({0, 3})}), "");
  EXPECT_EQ(why_not_divided({4}, {{{0}, {2}}, {{1}, {3}}}),
            "the parts [0] of shape [2] and [1] of shape [3] overlap");
  EXPECT_EQ(why_not_divided({4}, {{{0}, {2}}}),
            "its parts have 2 elements, but the shape [4] has 4");
  EXPECT_EQ(why_not_divided({4}, {{{2}, {3}}}),
            "the part [2] of shape [3] lies outside of the shape [4]");
}

TEST(Box, HugeShapesAreNoDivisionOfSmallParts) {
  const std::vector<Box> corners = {{{0, 0}, {1, 1}}, {{kHuge - 1, kHuge - 1}, {1, 1}}};
  EXPECT_THAT(why_not_divided(shape_around(corners), corners), HasSubstr("has too many"));
}

}  // namespace
}  // namespace peal::train
