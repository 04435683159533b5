// The cost of waiting. A rank that waits long for another leaves its core to others, and so does an
// idle group. The tests measure shares of the elapsed time, so that a busy machine does not matter.
#include <time.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

nanoseconds cpu_time(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

/// The share of a core, measured by `clock`, that is used while `body` runs.
template <class Body>
double share_of_core(clockid_t clock, Body&& body) {
  const TimePoint begin = Clock::now();
  const nanoseconds before = cpu_time(clock);
  body();
  const std::chrono::duration<double> used = cpu_time(clock) - before;
  return used / (Clock::now() - begin);
}

class WaitingTest : public ::testing::TestWithParam<Fabric> {};

TEST_P(WaitingTest, ARankThatWaitsLongUsesLittleOfItsCore) {
  constexpr milliseconds kLate(500);
  Job job(GetParam(), 2);
  std::latch rank_0_waits(1);
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(1000);
    group->all_reduce(data);
    return share_of_core(CLOCK_THREAD_CPUTIME_ID, [&] {
      if (rank == 0) rank_0_waits.count_down();
      if (rank == 1) {
        rank_0_waits.wait();
        std::this_thread::sleep_for(kLate);
      }
      group->all_reduce(data);
    });
  });
  for (const auto& end : ended) EXPECT_EQ(end.error, "");
  EXPECT_LT(ended[0].result, 0.1);
}

TEST_P(WaitingTest, AnIdleGroupUsesNoCore) {
  static constexpr milliseconds kIdle(300);
  Job job(GetParam(), 2);
  std::barrier both(2);  // not of the group, so that no work of the group is measured
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(1000);
    group->all_reduce_async(data)->wait();  // so that there is a worker
    both.arrive_and_wait();
    const double used =
        share_of_core(CLOCK_PROCESS_CPUTIME_ID, [] { std::this_thread::sleep_for(kIdle); });
    both.arrive_and_wait();
    return used;
  });
  for (const auto& end : ended) {
    EXPECT_EQ(end.error, "");
    EXPECT_LT(end.result, 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         WaitingTest,
                         ::testing::ValuesIn(kAllFabrics),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
