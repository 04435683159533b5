// Copies of bytes that share a page with other memory.
#include "peal/transport/window/location.h"

#include <vector>

#include <gtest/gtest.h>

namespace peal::transport {
namespace {

TEST(CopyEdgesTest, OnlyTheEdgesAreCopied) {
  std::vector<std::byte> from(100, std::byte{1});
  std::vector<std::byte> to(100, std::byte{2});
  copy_edges({.offset = {}, .head = 10_B, .tail = 20_B}, 100_B, from.data(), to.data());
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(to[i], i < 10 || i >= 80 ? std::byte{1} : std::byte{2}) << i;
  }
}

}  // namespace
}  // namespace peal::transport
