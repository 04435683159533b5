#include "peal/system/memory_kills.h"

#include <gtest/gtest.h>

#include "peal/base/testing/root.h"

namespace peal {
namespace {

TEST(MemoryKillsTest, CgroupV2CountsKillsInMemoryEvents) {
  const Root root;
  root.write("proc/self/cgroup", "0::/jobs/mine\n");
  root.write("sys/fs/cgroup/jobs/memory.events", "low 0\noom 9\noom_kill 9\n");
  root.write("sys/fs/cgroup/jobs/mine/memory.events",
             "low 0\nhigh 0\nmax 71\noom 2\noom_kill 3\noom_group_kill 0\n");
  EXPECT_EQ(memory_kills(root.path()), 3) << "of this cgroup, not of its parent";
}

TEST(MemoryKillsTest, CgroupV1CountsKillsInOomControl) {
  const Root root;
  root.write("proc/self/cgroup", "9:cpuset:/other\n4:memory:/mine\n0::/\n");
  root.write("sys/fs/cgroup/memory/mine/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(memory_kills(root.path()), 5);
}

TEST(MemoryKillsTest, AContainerThatSeesTheHostsPathFindsItsOwnCounter) {
  const Root root;
  root.write("proc/self/cgroup", "4:memory:/docker/4711\n");
  root.write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill 1\n");
  EXPECT_EQ(memory_kills(root.path()), 1);
}

TEST(MemoryKillsTest, WithoutACounterTheNumberIsNotKnown) {
  const Root root;
  EXPECT_EQ(memory_kills(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "0::/mine\n");
  root.write("sys/fs/cgroup/mine/memory.events", "low 0\noom 0\n");  // before Linux 4.13
  EXPECT_EQ(memory_kills(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/mine/memory.events", "oom_kill\n");
  EXPECT_EQ(memory_kills(root.path()), std::nullopt);
}

TEST(MemoryKillsTest, TheLimitIsTheLeastOfAllAncestors) {
  const Root root;
  root.write("proc/self/cgroup", "0::/jobs/mine\n");
  root.write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  EXPECT_EQ(memory_limit(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/jobs/memory.max", "2147483648\n");
  EXPECT_EQ(memory_limit(root.path()), Bytes(2147483648));
  root.write("sys/fs/cgroup/jobs/mine/memory.max", "1048576\n");
  EXPECT_EQ(memory_limit(root.path()), Bytes(1048576));
}

TEST(MemoryKillsTest, TheLargestNumberOfVersion1IsNoLimit) {
  const Root root;
  root.write("proc/self/cgroup", "4:memory:/mine\n");
  root.write("sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limit(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "65536\n");
  EXPECT_EQ(memory_limit(root.path()), Bytes(65536));
}

}  // namespace
}  // namespace peal
