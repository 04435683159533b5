#include "peal/launch/elastic/elastic_options.h"

#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

TEST(ElasticOptionsTest, WrongOptionsAreRejected) {
  const ElasticOptions good{.discovery_script = "hosts"};
  EXPECT_NO_THROW(check(good));
  EXPECT_NO_THROW(check({.hosts = {{"node1", 2}}}));
  std::vector<ElasticOptions> all(6, good);
  all[0].discovery_script = "";
  all[1].min_ranks = 0;
  all[2].min_ranks = 3;
  all[2].max_ranks = 2;
  all[3].slots = 0;
  all[4].timeout = Timeout(0);
  all[5].cooldown = Cooldown{std::chrono::seconds(5), std::chrono::seconds(4)};
  for (const ElasticOptions& bad : all) EXPECT_THROW(check(bad), Error);
}

}  // namespace
}  // namespace peal::launch
