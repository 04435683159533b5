#include "peal/train/checkpoint/values.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using ::testing::HasSubstr;
using testing::thrown_text;

TEST(Values, NumbersKeepAllBits) {
  Values values;
  values.set("third", 1.0 / 3);
  values.set("float", 0.1f);
  values.set("infinite", -std::numeric_limits<double>::infinity());
  values.set("nan", std::numeric_limits<double>::quiet_NaN());
  values.set("largest", std::numeric_limits<std::uint64_t>::max());
  values.set("smallest", std::numeric_limits<std::int64_t>::min());
  values.set("yes", true);
  EXPECT_EQ(values.number<double>("third"), 1.0 / 3);
  EXPECT_EQ(values.number<float>("float"), 0.1f);
  EXPECT_EQ(values.number<double>("infinite"), -std::numeric_limits<double>::infinity());
  EXPECT_NE(values.number<double>("nan"), values.number<double>("nan"));
  EXPECT_EQ(values.number<std::uint64_t>("largest"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(values.number<std::int64_t>("smallest"), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(values.number<bool>("yes"));
}

TEST(Values, AreTextThatAnyProgramReads) {
  Values values;
  values.set("epoch", 3);
  values.set("rate", 0.25);
  values.set("note", "a b");
  EXPECT_EQ(values.text("epoch"), "3");
  EXPECT_EQ(values.text("rate"), "0.25");
  EXPECT_EQ(values.text("note"), "a b");
}

TEST(Values, ErrorsNameTheValue) {
  Values values;
  values.set("note", "3 apples");
  values.set("large", 300);
  EXPECT_FALSE(values.contains("epoch"));
  EXPECT_THAT(thrown_text([&] { values.number<int>("epoch"); }),
              HasSubstr("there is no value \"epoch\""));
  EXPECT_THAT(thrown_text([&] { values.number<int>("note"); }),
              HasSubstr("the value \"note\" is \"3 apples\", not a number"));
  EXPECT_THAT(thrown_text([&] { values.number<std::int8_t>("large"); }), HasSubstr("\"300\""));
}

}  // namespace
}  // namespace peal::train
