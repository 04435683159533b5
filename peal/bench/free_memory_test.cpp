#include "peal/bench/free_memory.h"

#include <gtest/gtest.h>

#include "peal/base/testing/root.h"

namespace peal::bench {
namespace {

TEST(FreeMemoryTest, TheResultIsEmptyIfTheSystemReportsNothing) {
  EXPECT_EQ(free_memory(Root().path()), std::nullopt);
}

TEST(FreeMemoryTest, WithoutCgroupsItIsTheAvailableMemoryOfTheMachine) {
  const Root root;
  root.write("proc/meminfo", "MemTotal:  2048 kB\nMemFree:  16 kB\nMemAvailable:    1024 kB\n");
  EXPECT_EQ(free_memory(root.path()), 1_MiB);
}

TEST(FreeMemoryTest, TheSmallestRestOfTheCgroupsOfVersion2Counts) {
  const Root root;
  root.write("proc/meminfo", "MemAvailable:  1024 kB\n");
  root.write("proc/self/cgroup", "0::/jobs/mine\n");
  root.write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  root.write("sys/fs/cgroup/jobs/mine/memory.current", "5000\n");
  EXPECT_EQ(free_memory(root.path()), 1_MiB);
  root.write("sys/fs/cgroup/jobs/memory.max", "9000\n");
  root.write("sys/fs/cgroup/jobs/memory.current", "8000\n");
  EXPECT_EQ(free_memory(root.path()), Bytes(1000));
  root.write("sys/fs/cgroup/jobs/memory.stat", "anon 7000\ninactive_file 300\nactive_file 1\n");
  EXPECT_EQ(free_memory(root.path()), Bytes(1300)) << "what is cached can be had";
}

TEST(FreeMemoryTest, ACgroupOfVersion1CountsToo) {
  const Root root;
  root.write("proc/meminfo", "MemAvailable:  1024 kB\n");
  root.write("proc/self/cgroup", "4:memory:/mine\n3:cpuset:/\n");
  root.write("sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "700\n");
  root.write("sys/fs/cgroup/memory/mine/memory.stat", "inactive_file 9\ntotal_inactive_file 50\n");
  EXPECT_EQ(free_memory(root.path()), 1_MiB);
  root.write("sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(free_memory(root.path()), Bytes(350));
  root.write("sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(free_memory(root.path()), 0_B);
}

TEST(FreeMemoryTest, ThisMachineHasFreeMemory) { EXPECT_GT(free_memory().value(), 1_MiB); }

}  // namespace
}  // namespace peal::bench
