#include "peal/launch/kubernetes/pod_logs.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"

namespace peal::launch::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Pod pod(const std::string& name, const std::string& phase, int restarts = 0) {
  return {.name = name, .phase = phase, .restarts = restarts};
}

/// A master that was started twice, a worker that waits, and one that was restarted in place.
std::vector<RoleJob> jobs() {
  return {{.name = "j-m", .role = "m", .pods = {{pod("m1", "Failed"), pod("m2", "Running")}}},
          {.name = "j-w",
           .role = "w",
           .first_rank = 1,
           .nodes = 2,
           .pods = {{pod("w1", "Pending")}, {pod("w2", "Running", 2)}}}};
}

std::vector<std::string> names(const std::vector<LogSource>& sources) {
  std::vector<std::string> list;
  for (const LogSource& source : sources) {
    list.push_back(source.pod + (source.is_previous ? " before" : ""));
  }
  return list;
}

std::string refusal(const LogQuery& query) {
  try {
    log_sources(jobs(), query);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "not refused";
}

TEST(LogSources, AreTheLastStartsOfAllNodes) {
  EXPECT_THAT(names(log_sources(jobs(), {})), ElementsAre("m2", "w2"));
}

TEST(LogSources, OfOneAttempt) {
  EXPECT_THAT(names(log_sources(jobs(), {.node = 0, .attempt = 0})), ElementsAre("m1"));
  EXPECT_THAT(names(log_sources(jobs(), {.node = 2, .attempt = 1})), ElementsAre("w2 before"));
  EXPECT_THAT(names(log_sources(jobs(), {.node = 2, .attempt = 2})), ElementsAre("w2"));
  EXPECT_THAT(names(log_sources(jobs(), {.attempt = 5})), IsEmpty());
}

TEST(LogSources, ThatDoNotExistAreRefused) {
  EXPECT_THAT(refusal({.node = 3}), HasSubstr("no node 3: its nodes are 0 to 2"));
  EXPECT_THAT(refusal({.node = 1}), HasSubstr("not started yet"));
  EXPECT_THAT(refusal({.node = 0, .attempt = 2}), HasSubstr("started 2 times"));
  EXPECT_THAT(refusal({.node = 2, .attempt = 0}), HasSubstr("removed after a later restart"));
}

TEST(LogSources, ToFollowAreAllStartsThatHaveALog) {
  EXPECT_THAT(names(sources_to_follow(jobs(), {})), ElementsAre("m1", "m2", "w2"));
  EXPECT_THAT(names(sources_to_follow(jobs(), {.node = 0, .attempt = 1})), ElementsAre("m2"));
}

}  // namespace
}  // namespace peal::launch::kubernetes
