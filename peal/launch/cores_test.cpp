#include "peal/launch/cores.h"

#include <sched.h>

#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Core> single_threaded(int count) {
  std::vector<Core> cores;
  for (int cpu = 0; cpu < count; ++cpu) cores.push_back(Core{{cpu}});
  return cores;
}

TEST(CoresTest, EachCoreGoesToExactlyOneRankAndNeighboursStayTogether) {
  for (int count = 1; count <= 17; ++count) {
    for (int ranks = 1; ranks <= count; ++ranks) {
      std::vector<int> given;
      for (const CoreShare& share : divide_cores(single_threaded(count), ranks)) {
        EXPECT_EQ(share.threads, count / ranks);
        EXPECT_GE(static_cast<int>(share.cpus.size()), share.threads);
        EXPECT_LE(static_cast<int>(share.cpus.size()), share.threads + 1);
        given.insert(given.end(), share.cpus.begin(), share.cpus.end());
      }
      std::vector<int> all;
      for (int cpu = 0; cpu < count; ++cpu) all.push_back(cpu);
      EXPECT_EQ(given, all) << count << " cores, " << ranks << " ranks";
    }
  }
}

TEST(CoresTest, ARankIsBoundToAllThreadsOfItsCoresButCountsTheCores) {
  const std::vector<Core> cores = {{{0, 4}}, {{1, 5}}, {{2, 6}}, {{3, 7}}};
  const auto shares = divide_cores(cores, 2);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(shares[1].cpus, ElementsAre(2, 6, 3, 7));
  EXPECT_EQ(shares[0].threads, 2);
}

TEST(CoresTest, MoreRanksThanCoresShareTheHardwareThreads) {
  const auto shares = divide_cores({{{0, 2}}, {{1, 3}}}, 3);
  EXPECT_THAT(shares[0].cpus, ElementsAre(0));
  EXPECT_THAT(shares[1].cpus, ElementsAre(2));
  EXPECT_THAT(shares[2].cpus, ElementsAre(1, 3));
}

TEST(CoresTest, MoreRanksThanHardwareThreadsAreNotBoundAndGetOneThreadEach) {
  for (const CoreShare& share : divide_cores(single_threaded(2), 3)) {
    EXPECT_THAT(share.cpus, IsEmpty());
    EXPECT_EQ(share.threads, 1);
  }
}

TEST(CoresTest, AQuotaBelowTheNumberOfCoresIsDividedAndBindsNoRank) {
  for (const CoreShare& share : divide_cores(single_threaded(64), 2, 5.5)) {
    EXPECT_THAT(share.cpus, IsEmpty());
    EXPECT_EQ(share.threads, 2);
  }
  EXPECT_EQ(divide_cores(single_threaded(64), 4, 1.5)[3].threads, 1);
  EXPECT_EQ(divide_cores(single_threaded(4), 2, 4.0), divide_cores(single_threaded(4), 2));
}

/// The affinity of all threads of this process. The thread sanitizer has a thread of its own.
class Affinity {
 public:
  Affinity() { ::sched_getaffinity(0, sizeof before_, &before_); }
  ~Affinity() { set(before_); }
  std::set<int> cpus() const {
    std::set<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) cpus.insert(cpu);
    }
    return cpus;
  }
  void restrict_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    set(one);
  }

 private:
  static void set(const cpu_set_t& cpus) {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      ::sched_setaffinity(std::stoi(thread.path().filename()), sizeof cpus, &cpus);
    }
  }

  cpu_set_t before_{};
};

TEST(CoresTest, TheUsableCoresAreThoseOfThisProcess) {
  Affinity affinity;
  std::set<int> usable;
  for (const Core& core : usable_cores()) usable.insert(core.cpus.begin(), core.cpus.end());
  EXPECT_EQ(usable, affinity.cpus());

  const int last = *affinity.cpus().rbegin();
  affinity.restrict_to(last);
  EXPECT_THAT(usable_cores(), ElementsAre(Core{{last}}));
}

}  // namespace
}  // namespace peal::launch
