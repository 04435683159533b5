// The cost of groups that live at the same time. A group costs a rank the memory that the
// operations of the group use, and one descriptor. A group has neither a separate thread, nor
// descriptors for each peer, nor megabytes of shared memory.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"

#include "tests/support/number_after.h"
#include "tests/support/processes.h"

namespace peal::testing {
namespace {

constexpr int kRanks = kSanitized ? 4 : 8;
constexpr int kGroups = kSanitized ? 20 : 200;

TEST(LiveGroupsTest, AGroupCostsItsUsedMemoryADescriptorAndNoThread) {
  Processes processes;
  processes.start({PEAL_PROGRAM,
                   "run",
                   "-n",
                   std::to_string(kRanks),
                   PEAL_TEST_LIVE_GROUPS,
                   std::to_string(kGroups)},
                  {});
  const Processes::Ended ended = processes.wait(Deadline::after(kLimit)).front();
  EXPECT_TRUE(ended.in_time);
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(number_after(ended.output, "wrong: "), 0) << ended.output;

  const std::int64_t shared = number_after(ended.output, "shared bytes: ");
  EXPECT_GT(shared, 0);
  EXPECT_LE(shared, std::int64_t{kGroups} * kRanks * 20'000) << ended.output;  // 32 MB of 200
  const std::int64_t descriptors = number_after(ended.output, "descriptors: ");
  EXPECT_GT(descriptors, 0);
  EXPECT_LE(descriptors, kGroups + 100) << ended.output;
  const std::int64_t threads = number_after(ended.output, "threads: ");
  EXPECT_GT(threads, 0);
  EXPECT_LE(threads, 6) << ended.output;
}

}  // namespace
}  // namespace peal::testing
