// Operations that are repeated on the same buffers allocate no memory.
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocations.h"
#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

/// Lists and pools may still grow once: by chance a rank waits in another place, or more operations
/// exist at once, than in the first calls.
constexpr std::size_t kGrowth = 8;

class AllocationTest : public ::testing::TestWithParam<Fabric> {};

/// Runs `operation(group, data)` on two ranks. Returns how many blocks both have allocated in
/// `kTimes` calls after the first ones, in which each rank once waits long for the other.
template <class Run>
std::size_t blocks_of(Fabric fabric, Run&& operation) {
  constexpr int kFirst = 400, kTimes = 200;
  Job job(fabric, 2);
  std::barrier both(2);  // not of the group, which would allocate
  std::size_t before = 0, after = 0;
  const auto ended = on_ranks(2, [&](Rank rank) {
    const ProcessGroupPtr group = job.join(rank);
    std::vector<float> data(1000);
    for (int i = 0; i < kFirst; ++i) {
      if (i == rank) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      operation(*group, data);
    }
    both.arrive_and_wait();
    if (rank == 0) before = allocations();
    both.arrive_and_wait();
    for (int i = 0; i < kTimes; ++i) operation(*group, data);
    both.arrive_and_wait();
    if (rank == 0) after = allocations();
    both.arrive_and_wait();
    return 0;
  });
  for (const auto& end : ended) EXPECT_EQ(end.error, "");
  return after - before;
}

TEST_P(AllocationTest, BlockingOperations) {
  EXPECT_LE(blocks_of(GetParam(),
                      [](ProcessGroup& group, std::vector<float>& data) {
                        group.all_reduce(data);
                        group.broadcast(data, 1);
                        group.barrier();
                      }),
            kGrowth);
}

TEST_P(AllocationTest, StartedOperations) {
  EXPECT_LE(blocks_of(GetParam(),
                      [](ProcessGroup& group, std::vector<float>& data) {
                        const WorkPtr sum = group.all_reduce_async(data, {.op = ReduceOp::kAvg});
                        const WorkPtr copy = group.broadcast_async(data, 0);
                        sum->wait();
                        copy->wait();
                      }),
            kGrowth);
}

INSTANTIATE_TEST_SUITE_P(Fabrics,
                         AllocationTest,
                         ::testing::Values(Fabric::kMemory, Fabric::kShm, Fabric::kTcp),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace peal::testing
