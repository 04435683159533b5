#include "peal/named/response_cache.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace peal::named {
namespace {

Request named(std::string name) {
  Request request;
  request.name = std::move(name);
  return request;
}

TEST(ResponseCache, EvictsTheEntryThatWasUsedTheLongestTimeAgo) {
  ResponseCache cache(2);
  EXPECT_EQ(cache.insert(named("a")), std::nullopt);
  EXPECT_EQ(cache.insert(named("b")), std::nullopt);
  cache.touch(*cache.try_find("a"));
  EXPECT_EQ(cache.insert(named("c")), 1u);
  EXPECT_EQ(cache.try_find("b"), std::nullopt);
  EXPECT_EQ(cache.try_find("a"), 0u);
  EXPECT_EQ(cache.at(*cache.try_find("c")).name, "c");
  EXPECT_EQ(cache.end(), 2u);
}

TEST(ResponseCache, GivesTheLowestFreeNumber) {
  ResponseCache cache(8);
  for (const char* name : {"a", "b", "c", "d"}) cache.insert(named(name));
  cache.erase(2);
  cache.erase(0);
  EXPECT_FALSE(cache.contains(0));
  cache.insert(named("e"));
  EXPECT_EQ(cache.try_find("e"), 0u);
  cache.insert(named("f"));
  EXPECT_EQ(cache.try_find("f"), 2u);
  cache.insert(named("g"));
  EXPECT_EQ(cache.try_find("g"), 4u);
}

TEST(ResponseCache, RemembersNothingWithoutCapacity) {
  ResponseCache cache(0);
  EXPECT_EQ(cache.insert(named("a")), std::nullopt);
  EXPECT_EQ(cache.try_find("a"), std::nullopt);
}

TEST(ResponseCache, FindsTheMembersOfAGroup) {
  ResponseCache cache(3);
  Request member = named("a");
  member.group = "g";
  cache.insert(member);
  cache.insert(named("b"));
  member.name = "c";
  cache.insert(member);
  EXPECT_EQ(cache.members_of("g"), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(cache.members_of("h"), std::vector<std::size_t>());
  cache.erase(0);
  cache.touch(1);
  EXPECT_EQ(cache.members_of("g"), std::vector<std::size_t>{2});
  cache.insert(named("d"));
  cache.insert(named("e"));  // evicts "c"
  EXPECT_EQ(cache.members_of("g"), std::vector<std::size_t>());
}

}  // namespace
}  // namespace peal::named
