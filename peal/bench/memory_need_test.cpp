#include "peal/bench/memory_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::bench {
namespace {

using testing::HasSubstr;

Bytes buffers_of(Op op, BlockPlace place) {
  return bench::buffers_of(make_case(op, DType::kF32, 4, 64_KiB, place));
}

TEST(MemoryNeedTest, BuffersOfAllRanksAreCounted) {
  EXPECT_EQ(buffers_of(Op::kAllReduce, BlockPlace::kOut), 4 * 64_KiB);
  EXPECT_EQ(buffers_of(Op::kAllGather, BlockPlace::kOut), 4 * 64_KiB + 64_KiB);
  EXPECT_EQ(buffers_of(Op::kAllGather, BlockPlace::kIn), 4 * 64_KiB);
  EXPECT_EQ(buffers_of(Op::kGather, BlockPlace::kOut), 2 * 64_KiB);
  EXPECT_EQ(buffers_of(Op::kAllToAll, BlockPlace::kOut), 8 * 64_KiB);
  EXPECT_EQ(buffers_of(Op::kBarrier, BlockPlace::kOut), 0_B);
}

TEST(MemoryNeedTest, TheBuffersOfAllHoldersMustFitTogether) {
  const Case c = make_case(Op::kAllReduce, DType::kF32, 2, 1024_MiB, BlockPlace::kOut);
  const std::vector<Holder> holders = {{"peal registered", 2048_MiB}, {"probe", 1024_MiB}};
  EXPECT_NO_THROW(check_memory(c, holders, 3072_MiB));
  const Error error = error_of([&] { check_memory(c, holders, 3071_MiB); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(),
              HasSubstr("all_reduce of 1073741824 B of f32 on 2 ranks takes 3.0 GiB of memory for "
                        "the buffers of all ranks (peal registered 2.0 GiB, probe 1.0 GiB)"));
}

}  // namespace
}  // namespace peal::bench
