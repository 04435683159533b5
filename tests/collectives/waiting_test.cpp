// What waiting costs: a rank that waits long for another leaves its core to others, and so does a
// group that does nothing.
#include <time.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

nanoseconds cpu_time(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

class WaitingTest : public ::testing::TestWithParam<Fabric> {};

TEST_P(WaitingTest, ARankThatWaitsLongForAnotherUsesLittleOfItsCore) {
  constexpr milliseconds kLate(500);
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(1000);
    group->all_reduce(data);
    if (rank == 1) std::this_thread::sleep_for(kLate);
    const nanoseconds before = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    group->all_reduce(data);
    return cpu_time(CLOCK_THREAD_CPUTIME_ID) - before;
  });
  for (const auto& end : ended) EXPECT_EQ(end.error, "");
  EXPECT_LT(duration_cast<milliseconds>(ended[0].result), kLate / 10);
}

TEST_P(WaitingTest, AnIdleGroupUsesNoCore) {
  constexpr milliseconds kIdle(300);
  Job job(GetParam(), 2);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(1000);
    group->all_reduce_async(data)->wait();  // so that there is a worker
    group->barrier();
    const nanoseconds before = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(kIdle);
    const nanoseconds used = cpu_time(CLOCK_PROCESS_CPUTIME_ID) - before;
    group->barrier();
    return used;
  });
  for (const auto& end : ended) {
    EXPECT_EQ(end.error, "");
    EXPECT_LT(duration_cast<milliseconds>(end.result), kIdle / 20);
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         WaitingTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
