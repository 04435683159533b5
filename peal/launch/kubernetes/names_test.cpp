#include "peal/launch/kubernetes/names.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::kubernetes {
namespace {

using testing::AllOf;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

const auto kDnsLabel = MatchesRegex("[a-z]([-a-z0-9]*[a-z0-9])?");

TEST(Names, ASafeTextIsItsOwnName) {
  for (const char* const text : {"a", "mnist", "mnist-3", "a--b", "x0123456789"}) {
    EXPECT_EQ(safe_name(text, 36), text);
  }
}

TEST(Names, OtherTextsBecomeAReadablePartAndAHash) {
  EXPECT_THAT(safe_name("MNIST_run 3", 36), StartsWith("mnist-run-3-x"));
  EXPECT_THAT(safe_name("3", 36), StartsWith("j3-x"));
  EXPECT_THAT(safe_name("__", 36), StartsWith("j-x"));
  EXPECT_THAT(safe_name("", 36), StartsWith("j-x"));
}

TEST(Names, EachNameIsADnsLabelWithinTheLimit) {
  for (const std::string& text : {std::string("A"),
                                  std::string("-a"),
                                  std::string("a-"),
                                  std::string("ä\n🔔"),
                                  std::string(1000, 'a'),
                                  std::string(1000, '-'),
                                  std::string("a.b/c"),
                                  std::string("0")}) {
    for (const std::size_t limit : {14, 20, 36, 63}) {
      const std::string name = safe_name(text, limit);
      EXPECT_THAT(name, kDnsLabel) << text;
      EXPECT_LE(name.size(), limit) << text;
    }
  }
}

TEST(Names, DifferentTextsHaveDifferentNames) {
  std::set<std::string> names;
  std::vector<std::string> texts = {
      "a_b", "a-b", "a.b", "A-b", "a-B", "a b", "-a-b", "a-b-", "a--b"};
  for (int i = 0; i < 20'000; ++i) texts.push_back(fmt::format("Job_{}", i));
  for (const std::string& text : texts) names.insert(safe_name(text, 36));
  EXPECT_EQ(names.size(), texts.size());
}

TEST(Names, ASafeTextThatLooksLikeAChangedNameIsChanged) {
  const std::string changed = safe_name("MNIST", 36);
  EXPECT_NE(safe_name(changed, 36), changed);
}

TEST(Names, PodsOfTheLongestNamesFitIntoALabel) {
  const std::string id(100, 'J');
  const std::string role(100, 'R');
  for (const int nodes : {1, 2, 10, 11, 100'000}) {
    const std::string job = role_job_name(id, role, nodes);
    EXPECT_LE(fmt::format("{}-{}-abcde", job, nodes - 1).size(), 63);
    EXPECT_THAT(job, kDnsLabel);
  }
}

TEST(Names, ANodeIsReachedByItsJobAndTheService) {
  EXPECT_EQ(host_name("mnist", "worker", 3, 2), "mnist-worker-2.mnist");
}

}  // namespace
}  // namespace peal::launch::kubernetes
