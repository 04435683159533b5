// Counts that do not fit into 32 bits. Takes some gigabytes of memory, with one test each for
// staged data, data on a wire, and a message.
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/fabric.h"

namespace peal::testing {
namespace {

constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 77;

bool has_memory_for(std::int64_t bytes) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return ::sysconf(_SC_AVPHYS_PAGES) * page > bytes;
}

/// A 32-bit count would lose the last elements.
template <class Operation>
void expect_the_end_is_right(Fabric fabric, std::uint8_t expected, Operation operation) {
  if (!has_memory_for(3 * kMany)) GTEST_SKIP() << "needs 6 GiB of free memory";
  Job job(fabric, 2);
  EXPECT_EQ(
      complaints(on_group(job,
                          [&](ProcessGroup& group) -> std::string {
                            std::vector<std::uint8_t> data(kMany);
                            std::fill(data.end() - 100, data.end(), group.rank() == 0 ? 3 : 4);
                            operation(group, Buffer(data));
                            const bool well = data[kMany - 1] == expected &&
                                              data[kMany - 100] == expected && data[kMany / 2] == 0;
                            return well ? "" : "wrong";
                          })),
      "");
}

TEST(LargeTest, AnAllReduceOfMoreThanTwoGigaElementsIsComplete) {
  expect_the_end_is_right(
      Fabric::kShm, 7, [](ProcessGroup& group, Buffer data) { group.all_reduce(data); });
}

TEST(LargeTest, ABroadcastOverTcpOfMoreThanTwoGigaElementsIsComplete) {
  expect_the_end_is_right(
      Fabric::kTcp, 4, [](ProcessGroup& group, Buffer data) { group.broadcast(data, 1); });
}

TEST(LargeTest, AMessageOfMoreThanTwoGigaElementsIsComplete) {
  expect_the_end_is_right(Fabric::kShm, 3, [](ProcessGroup& group, Buffer data) {
    if (group.rank() == 0) {
      group.send(data, 1);
    } else {
      group.recv(data, 0);
    }
  });
}

}  // namespace
}  // namespace peal::testing
