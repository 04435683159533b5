#include "peal/train/formats/sharding_info.h"

#include <string>

#include <gmock/gmock.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(std::string_view text) {
  try {
    parse_sharding_info(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    return std::string(error.message());
  }
  return "no error";
}

TEST(ShardingInfo, ParsesWhatWasPrinted) {
  const ShardingInfo info = {{"conv \"1\"", {3, 0}}, {"step", {}}};
  EXPECT_EQ(print_sharding_info(info),
            R"({"conv \"1\"":{"saved_offsets":[3,0]},"step":{"saved_offsets":[]}})");
  EXPECT_EQ(parse_sharding_info(print_sharding_info(info)), info);
  EXPECT_EQ(print_sharding_info({}), "{}");
  EXPECT_EQ(parse_sharding_info("{}"), ShardingInfo{});
}

TEST(ShardingInfo, ReadsTheTextThatPythonWrites) {
  EXPECT_THAT(parse_sharding_info(R"({"a": {"saved_offsets": [1, 2]}})").at("a"),
              ElementsAre(1, 2));
}

TEST(ShardingInfo, RefusesOtherJson) {
  for (const char* text : {"[]",
                           "",
                           "{",
                           R"({"a":1})",
                           R"({"a":[]})",
                           R"({"a":{}})",
                           R"({"a":{"b":[]}})",
                           R"({"a":{"saved_offsets":1}})",
                           R"({"a":{"saved_offsets":[-1]}})",
                           R"({"a":{"saved_offsets":[[1]]}})",
                           R"({"a":{"saved_offsets":[{}]}})",
                           R"({"a":{"saved_offsets":["1"]}})",
                           R"({"a":{"saved_offsets":[],"saved_offsets":[]}})",
                           R"({"a":{"saved_offsets":[9223372036854775808]}})"}) {
    EXPECT_NE(refusal_of(text), "no error") << text;
  }
  EXPECT_THAT(refusal_of(R"({"a":{"saved_offsets":[]},"a":{"saved_offsets":[]}})"),
              HasSubstr("\"a\" twice"));
}

}  // namespace
}  // namespace peal::train
