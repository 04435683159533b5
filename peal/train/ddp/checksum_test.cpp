#include "peal/train/ddp/checksum.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace peal::train {
namespace {

std::vector<std::byte> bytes(std::size_t count) {
  std::vector<std::byte> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::byte>(i * 7);
  return data;
}

TEST(ChecksumTest, EqualBytesHaveEqualChecksums) {
  EXPECT_EQ(checksum(bytes(100)), checksum(bytes(100)));
}

TEST(ChecksumTest, EachChangedBitIsNoticed) {
  for (const std::size_t count : {1, 7, 8, 9, 31}) {
    std::vector<std::byte> data = bytes(count);
    std::set<std::uint64_t> seen = {checksum(data)};
    for (std::size_t bit = 0; bit < 8 * count; ++bit) {
      const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
      data[bit / 8] ^= mask;
      EXPECT_TRUE(seen.insert(checksum(data)).second) << "bit " << bit << " of " << count;
      data[bit / 8] ^= mask;
    }
  }
}

TEST(ChecksumTest, LengthOrderAndSeedCount) {
  const std::vector<std::byte> zeros(8), more_zeros(9);
  EXPECT_NE(checksum(zeros), checksum(more_zeros));
  const std::vector<std::byte> a = bytes(8), b(8);
  EXPECT_NE(checksum(b, checksum(a)), checksum(a, checksum(b)));
  EXPECT_NE(checksum(a, 1), checksum(a, 2));
}

}  // namespace
}  // namespace peal::train
