// Far more ranks than cores: hundreds of processes of one machine start, run every operation once
// and end, in a few megabytes each. On two cores without other load 256 ranks took 22 s, of which 8
// s to meet, and staged 5 MB each. The deadline allows for other load.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "peal/base/testing/sanitized.h"

#include "tests/support/number_after.h"
#include "tests/support/processes.h"

namespace peal::testing {
namespace {

#if defined(NDEBUG)
constexpr int kMany = 256;
#else
constexpr int kMany = 64;
#endif
constexpr int kRanks = kSanitized ? 12 : kMany;
constexpr std::int64_t kMostStaged = 32'000'000;

Processes::Ended launch(int ranks) {
  Processes processes;
  processes.start({PEAL_PROGRAM, "run", "-n", std::to_string(ranks), PEAL_TEST_CROWD}, {});
  return processes.wait(Deadline::after(kLimit)).front();
}

TEST(CrowdTest, HundredsOfRanksRunEveryOperationAndStageLittle) {
  const Processes::Ended ended = launch(kRanks);
  EXPECT_TRUE(ended.in_time);
  EXPECT_EQ(ended.code, 0) << ended.output;
  const std::int64_t staged = number_after(ended.output, "staged at most ");
  EXPECT_GT(staged, 0) << ended.output;
  EXPECT_LE(staged, kMostStaged) << ended.output;
}

/// The usual limit is 1024, and may be raised. So this test uses fewer ranks and files.
TEST(CrowdTest, RanksStartUnderTheUsualLimitOfOpenFiles) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit usual{std::min<rlim_t>(limit.rlim_cur, 64), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  const Processes::Ended ended = launch(16);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(ended.code, 0) << ended.output;
}

}  // namespace
}  // namespace peal::testing
