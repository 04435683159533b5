#include "peal/system/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "peal/base/testing/root.h"

namespace peal {
namespace {

TEST(CpusTest, WithoutCgroupsThereIsNoQuota) { EXPECT_EQ(cpu_quota(Root().path()), std::nullopt); }

TEST(CpusTest, TheQuotaOfCgroupV2IsTheLeastOfAllAncestors) {
  const Root root;
  root.write("proc/self/cgroup", "0::/jobs/mine\n");
  root.write("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/jobs/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 2.5);
  root.write("sys/fs/cgroup/jobs/mine/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 0.5);
}

TEST(CpusTest, TheQuotaOfCgroupV1IsFoundAmongTheControllers) {
  const Root root;
  root.write("proc/self/cgroup", "9:cpuset:/other\n4:cpu,cpuacct:/mine\n1:name=systemd:/\n0::/\n");
  root.write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/mine/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(cpu_quota(root.path()), 3.0);
}

TEST(CpusTest, AContainerThatSeesTheHostsPathFindsItsLimits) {
  const Root root;
  root.write("proc/self/cgroup", "4:cpu:/docker/4711\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
}

TEST(CpusTest, MalformedLinesAreIgnored) {
  const Root root;
  root.write("proc/self/cgroup", "\n:\nnonsense\n4:cpu\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
}

TEST(CpusTest, TheCpusOfProcessesAreTheUnionOfTheirAffinities) {
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  const std::int64_t self = ::getpid();
  const int all = CPU_COUNT(&own);
  EXPECT_EQ(cpus_of(std::array{self}), all);
  EXPECT_EQ(cpus_of(std::array{self, self}), all) << "shared CPUs count once";
  EXPECT_EQ(cpus_of({}), 0);
  EXPECT_EQ(cpus_of(std::array{std::int64_t{-1}}), 0) << "no process has this number";
}

TEST(CpusTest, AtLeastOneProcessCanRun) { EXPECT_EQ(cpus_at_once({}), 1); }

/// Threads of this process act as processes that a launcher has bound.
TEST(CpusTest, TheCpusOfBoundProcessesAreAddedUp) {
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  if (CPU_COUNT(&own) < 2) GTEST_SKIP() << "this process may use only one CPU";
  std::array<int, 2> cpus = {-1, -1};
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus[1] < 0; ++cpu) {
    if (CPU_ISSET(cpu, &own)) cpus[cpus[0] < 0 ? 0 : 1] = cpu;
  }
  const auto bind_to = [](int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  };
  std::thread([&] {
    bind_to(cpus[0]);
    const std::int64_t first = ::gettid();
    std::thread([&] {
      bind_to(cpus[1]);
      const std::int64_t second = ::gettid();
      EXPECT_EQ(cpus_of(std::array{first}), 1);
      EXPECT_EQ(cpus_of(std::array{first, second}), 2);
      bind_to(cpus[0]);
      EXPECT_EQ(cpus_of(std::array{first, second}), 1) << "both on the same CPU";
    }).join();
  }).join();
}

TEST(CpusTest, TheLastCacheIsTheLargestCacheOfTheFirstCpu) {
  const Root root;
  const std::filesystem::path caches = "sys/devices/system/cpu/cpu0/cache";
  root.write(caches / "index0/size", "32K\n");
  root.write(caches / "index1/size", "64K\n");
  EXPECT_EQ(last_cache(root.path()), 64_KiB);
  root.write(caches / "index2/size", "1024K\n");
  root.write(caches / "index3/size", "96M\n");
  EXPECT_EQ(last_cache(root.path()), 96_MiB);
}

TEST(CpusTest, AnUnknownCacheSizeIsGuessed) {
  const Root root;
  EXPECT_EQ(last_cache(root.path()), 16_MiB);
  root.write("sys/devices/system/cpu/cpu0/cache/index0/size", "unknown\n");
  EXPECT_EQ(last_cache(root.path()), 16_MiB);
  EXPECT_GT(last_cache(), 0_B);
}

}  // namespace
}  // namespace peal
