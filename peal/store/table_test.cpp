#include "peal/store/table.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TableTest, AddThatOverflowsFailsAndKeepsTheValue) {
  Table table;
  table.add("n", std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(table.add("n", 1), Error);
  EXPECT_EQ(table.add("n", -1), std::numeric_limits<std::int64_t>::max() - 1);
}

TEST(TableTest, AddToATextFailsAndNamesTheKey) {
  Table table;
  for (const char* value : {"", "x", "1x", " 1", "99999999999999999999"}) {
    table.set("name", value);
    try {
      table.add("name", 1);
      ADD_FAILURE() << value << " was accepted as a number";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), HasSubstr("\"name\""));
    }
  }
}

TEST(TableTest, TheLimitsAreExact) {
  Table table;
  const std::string key(static_cast<std::size_t>(kMaxKey.value), 'k');
  const std::string value(static_cast<std::size_t>(kMaxValue.value), 'v');
  table.set(key, value);
  EXPECT_EQ(*table.find(key), value);
  EXPECT_THROW(table.set(key + "k", ""), Error);
  EXPECT_THROW(table.find(key + "k"), Error);
  EXPECT_THROW(table.set("key", value + "v"), Error);
}

TEST(TableTest, TheErrorNamesOnlyTheFirstMissingKeys) {
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("key" + std::to_string(i));
  keys[1] = std::string(1000, 'x');
  const Error error = missing_keys(keys);
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("\"key0\""), HasSubstr("and 12 more"), Not(HasSubstr("key19"))));
  EXPECT_LT(error.message().size(), 400u);
}

}  // namespace
}  // namespace peal::store
